drop index inbox_dismissed;
