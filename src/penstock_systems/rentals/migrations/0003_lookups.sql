-- What is looked up by another column than the key.

create index home_splits_other on home_splits (other_id);
create index home_listings_home on home_listings (home_id, joined_at);
create index notices_home on notices (home_id, search_id, created_at);
