-- The newest articles of a brand, with which a new one is compared, the newest reports, and the failures of a brand.
create index sm_content_recent on sm_content (brand_id, created_at) where status in ('draft', 'published');

create index sm_reports_recent on sm_reports (created_at);

create index sm_failures_brand on sm_failures (brand_id, kind, keyword);
