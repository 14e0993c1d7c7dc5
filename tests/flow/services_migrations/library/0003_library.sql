create table lib_shelves (name text primary key);
