//! The behaviours of the library, one module for each part of it. `docs/conformance.md` names these tests.

mod support;

mod smoke;
