create table shipped (item text not null);
