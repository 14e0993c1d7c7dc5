create table desk_notes (keyword text not null, pages bigint not null);
