create table scores (number integer primary key, score integer not null);
