-- One probe finds a chart that is due: the index has only charts that are scanned, the one that is due first at its beginning.
drop index category_scans_due;
create index category_scans_due on category_scans (next_scan_at) where priority in ('high', 'active', 'medium', 'low');
