//! The reflector on the server, under every fault: what heals on its own, and what only the comparison notices.

mod answers;
mod chaos;
mod events;
mod rules;
mod support;
mod transport;
mod unseen;
