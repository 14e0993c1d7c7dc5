-- What the daily clean-up finds old rows by.

create index digest_items_kept on digest_items (kept_at);
create index notification_dead_letters_at on notification_dead_letters (dead_at);
