-- Nothing is stored in an index.

drop index inbox_unanswered;
