//! The conformance checks of the API server. Each test is named after its number in the project's checklist of the
//! protocol: one number, one behaviour.

#![allow(unreachable_pub)]

mod support;

mod around;
mod crds;
mod deletions;
mod discovery;
mod garbage;
mod hostile;
mod hostile_writes;
mod lists;
mod namespaces;
mod openapi;
mod ownership;
mod protobuf;
mod representations;
mod selectors;
mod tables;
mod types;
mod watches;
mod writes;
