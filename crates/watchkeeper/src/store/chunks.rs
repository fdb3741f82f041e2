//! A vector that can be looked at while it changes.
//!
//! Its elements lie in chunks of fixed size, the chunks behind `Arc`, and the list of the chunks (the spine) behind
//! another. Whoever wants to look takes the spine's pointer, and has the vector as it was. A change copies the chunk
//! that it touches, and the spine, if somebody still holds them, and changes them in place otherwise. So a view costs
//! nothing until something changes, and then one chunk for each place of change.

use std::sync::Arc;

/// The chunks of a vector, as they were when they were taken.
pub(super) type Spine<E> = Arc<Vec<Arc<[E]>>>;

/// See the file's beginning. `N` elements are a chunk.
pub(super) struct Chunks<E, const N: usize> {
    spine: Spine<E>,
    copied: u64,
}

impl<E: Clone, const N: usize> Chunks<E, N> {
    pub(super) fn new() -> Self {
        Self { spine: Arc::default(), copied: 0 }
    }

    /// All elements that there are room for.
    pub(super) fn capacity(&self) -> usize {
        self.spine.len() * N
    }

    /// The elements as they are now.
    pub(super) fn view(&self) -> Spine<E> {
        self.spine.clone()
    }

    pub(super) fn get(&self, at: u32) -> Option<&E> {
        element::<E, N>(&self.spine, at)
    }

    /// The element, to be changed. There is one: numbers come from [`grow`](Self::grow).
    pub(super) fn get_mut(&mut self, at: u32) -> &mut E {
        let chunk = &mut Arc::make_mut(&mut self.spine)[at as usize / N];
        if Arc::get_mut(chunk).is_none() {
            self.copied += 1;
        }
        &mut Arc::make_mut(chunk)[at as usize % N]
    }

    /// Adds a chunk, and returns the numbers of its elements.
    pub(super) fn grow(&mut self, element: impl Fn() -> E) -> std::ops::Range<u32> {
        let (from, to) = (self.capacity(), self.capacity() + N);
        // Checked before anything changes. The limit leaves a bit and some numbers with a meaning of their own.
        assert!(to <= super::MOST, "a store holds at most {} values", super::MOST);
        Arc::make_mut(&mut self.spine).push((0..N).map(|_| element()).collect());
        from as u32..to as u32
    }

    /// How many chunks were copied because somebody held them.
    pub(super) fn copied(&self) -> u64 {
        self.copied
    }
}

/// An element of a view.
pub(super) fn element<E, const N: usize>(spine: &Spine<E>, at: u32) -> Option<&E> {
    spine.get(at as usize / N)?.get(at as usize % N)
}
