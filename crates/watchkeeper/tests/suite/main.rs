//! The behaviours of the library, one module for each part of it. `docs/conformance.md` names these tests.

#![allow(unreachable_pub)]

mod support;

mod smoke;
