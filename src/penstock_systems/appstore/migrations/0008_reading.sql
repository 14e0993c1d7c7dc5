-- What people look through the results by. Each index holds only what is shown, in the order in which it is shown.

create index reading_apps_rising on app_registry (rating_velocity_7d desc, track_id) where rating_velocity_7d is not null;
create index reading_apps_strong on app_registry (competitiveness_score desc, track_id)
  where competitiveness_score is not null;
create index reading_apps_new on app_registry (first_seen_at desc, track_id);
create index reading_apps_genre on app_registry (primary_genre, rating_count desc, track_id)
  where primary_genre is not null;
-- What the report counts as enriched, without a look at the rows themselves.
create index reading_apps_enriched on app_registry (track_id, enrichment_source) where enrichment_source <> 'failed';
create index reading_keywords_demand on crawl_keywords (demand desc, keyword) where demand is not null;
-- A market without a score stands last, in both databases.
create index reading_markets_best on market_clusters ((coalesce(opportunity_score, -1)) desc, id) where ended_at is null;
create index reading_relations_b on cluster_relations (b, a);
create index reading_shares_at on shared_reports (created_at);
