-- Operators may be told once more of what lasts.

drop table incidents;
