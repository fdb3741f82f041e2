//! The conformance checks of the API server. Those with a number are listed in `docs/conformance.md`: one number, one
//! behaviour of the protocol.

#![allow(unreachable_pub)]

mod support;

mod around;
mod compared;
mod crds;
mod deletions;
mod discovery;
mod garbage;
mod hostile;
mod hostile_kinds;
mod hostile_writes;
mod lists;
mod namespaces;
mod openapi;
mod ownership;
mod patches;
mod protobuf;
mod refusals;
mod representations;
mod selectors;
mod tables;
mod types;
mod watches;
mod writes;
