-- Every node reads these again and again, and the others are as many as people.
create index chats_marked on chats (channel, account, chat)
    where allowed is not null or gone <> '';
