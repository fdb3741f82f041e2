//! Informers on the server, under every fault: cache and handlers agree with the server afterwards, and nothing is left.

mod answers;
mod chaos;
mod events;
mod heals;
mod hearing;
mod kinds;
mod many;
mod support;
mod transport;
mod unseen;
