//! The state of an informer at one moment.

use std::time::Duration;

use crate::{ReflectorStatus, ResourceVersion};

/// The state of an informer at one moment.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct InformerSample {
    /// The first list is in the store, and so is all that came with it.
    pub synced: bool,
    /// Changes that wait to be applied.
    pub queued_items: usize,
    /// Objects in the store.
    pub store_objects: usize,
    /// What they take in memory, about.
    pub store_bytes: usize,
    /// The version that the store shows.
    pub store_resource_version: ResourceVersion,
    /// How its reflectors are doing: one for each partition, with its name, or one without.
    pub reflectors: Vec<(Option<Box<str>>, ReflectorStatus)>,
    /// Its handlers.
    pub handlers: Vec<HandlerSample>,
}

/// The state of a handler at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerSample {
    /// What it is called.
    pub name: String,
    /// Events that wait for it.
    pub pending: usize,
    /// How often it has panicked.
    pub panics: u64,
    /// Events that it has been given.
    pub delivered: u64,
}

impl HandlerSample {
    /// A handler that nothing has happened to.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// The state of a work queue at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSample {
    /// Items that are to be worked on: those that can be taken, and those that come again when the work on them is done.
    pub depth: usize,
    /// Items that wait for their time.
    pub waiting: usize,
    /// Items that were added and were not there already; those that waited for their time are counted when that has come.
    pub adds: u64,
    /// How often an item was added with a delay, also with none of any length: client-go counts so.
    pub retries: u64,
    /// How long the work that is being done has taken so far, all of it together.
    pub unfinished: Duration,
    /// How long the longest of it has taken.
    pub longest_running: Duration,
}
