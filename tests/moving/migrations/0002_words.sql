create table words (word text primary key, uses integer not null);
