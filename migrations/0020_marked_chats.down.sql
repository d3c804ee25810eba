drop index chats_marked;
