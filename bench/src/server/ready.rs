//! Chunks that are rendered before anybody waits for them, and writes of many of them at once.

use std::io::{self, IoSlice, Write};
use std::ops::Range;

use crate::frames::{Event, pod_event};
use crate::pods::Pods;
use crate::templates::Format;

/// Chunks behind one another.
pub(crate) struct Ready {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Ready {
    /// The events `ADDED` of all pods at revision 0, in the order of lists.
    pub(crate) fn initial(pods: &Pods, format: Format) -> Self {
        Self::of(pods, format, Event::Added, pods.order().iter().map(|number| (*number, 0)))
    }

    /// Events of pods, with the versions that they get.
    pub(crate) fn of(
        pods: &Pods,
        format: Format,
        event: Event,
        events: impl Iterator<Item = (u32, u64)> + Clone,
    ) -> Self {
        let bytes: usize = events.clone().map(|(number, _)| pods.body(number, format).len() + 128).sum();
        let mut ready = Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(events.size_hint().0) };
        for (number, revision) in events {
            pod_event(pods, format, event, number, revision, &mut ready.bytes);
            ready.ends.push(ready.bytes.len());
        }
        ready
    }

    pub(crate) fn chunk(&self, nth: usize) -> &[u8] {
        let start = if nth == 0 { 0 } else { self.ends[nth - 1] };
        &self.bytes[start..self.ends[nth]]
    }
}

/// Parts of an answer that go out in one write, if the socket takes them.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    rendered: Vec<u8>,
    parts: Vec<Part<'a>>,
}

enum Part<'a> {
    Ready(&'a [u8]),
    Rendered(Range<usize>),
}

impl<'a> Batch<'a> {
    /// Bytes that are there anyway.
    pub(crate) fn push(&mut self, bytes: &'a [u8]) {
        self.parts.push(Part::Ready(bytes));
    }

    /// Bytes that are made now.
    pub(crate) fn render(&mut self, render: impl FnOnce(&mut Vec<u8>)) {
        let start = self.rendered.len();
        render(&mut self.rendered);
        match self.parts.last_mut() {
            Some(Part::Rendered(range)) => range.end = self.rendered.len(),
            _ => self.parts.push(Part::Rendered(start..self.rendered.len())),
        }
    }

    /// Whether there is enough for a write. (A write takes 1,024 parts at most.)
    pub(crate) fn is_full(&self) -> bool {
        self.parts.len() >= 1000 || self.rendered.len() >= 256 << 10
    }

    /// Writes all, and is empty then.
    pub(crate) fn send(&mut self, to: &mut impl Write) -> io::Result<()> {
        let rendered = &self.rendered;
        let mut slices: Vec<IoSlice<'_>> = self
            .parts
            .iter()
            .map(|part| match part {
                Part::Ready(bytes) => IoSlice::new(bytes),
                Part::Rendered(range) => IoSlice::new(&rendered[range.clone()]),
            })
            .collect();
        let mut rest = &mut slices[..];
        // Leaves out empty ones at the start: a write of nothing looks like a closed socket.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match to.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => IoSlice::advance_slices(&mut rest, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.parts.clear();
        self.rendered.clear();
        Ok(())
    }
}
