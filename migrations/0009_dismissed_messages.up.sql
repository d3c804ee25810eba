-- The page of deliveries lists dismissed messages with the dropped ones. The index has no rows until
-- an operator dismisses messages, and a message that is answered writes no entry of it.
create index inbox_dismissed on inbox (id) where dismissed;
comment on index inbox_dismissed is 'List and number of failed messages that an operator has dismissed.';
