//! Which of the items that can be worked on is next?
//!
//! The one of the highest priority, and of those the one that came first; or, with a fairness function, the first one of the
//! tenant whose turn it is. Two things stand against starvation:
//!
//! - *Fairness*: tenants of one priority take turns, so that one who adds ten thousand items does not keep others waiting.
//! - *Ageing*: an item that has waited for the queue's `max_age` comes next, whatever its priority. But only every other time:
//!   when thousands have waited that long, as after a start, what is urgent still gets through.
//!
//! An item is named by its place in the queue's table and a number that is given out anew each time it is placed. An entry
//! whose number is no longer the item's is a leftover: of an item that was taken because of its age, or whose priority was
//! raised. Leftovers are passed over, and swept out when there are more of them than of others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::band::Band;

/// An item's place in the table, and the number of its placing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) at: u32,
    pub(super) number: u64,
}

/// Whether a ticket is the one that its item has now. It has two: one for its place, which changes with its priority, and one
/// for its age, which does not.
pub(super) trait Holder {
    fn holds_place(&self, ticket: Ticket) -> bool;
    fn holds_age(&self, ticket: Ticket) -> bool;
}

pub(super) struct Ready {
    bands: BTreeMap<Reverse<i32>, Band>,
    /// Items by when they came, with that time.
    ages: VecDeque<(u64, Ticket)>,
    /// Tickets in `bands`, with leftovers.
    placed: usize,
    /// Items.
    len: usize,
    max_age: u64,
    /// Tenants take turns.
    fair: bool,
    /// The last one was taken out of turn, because of its age.
    aged_last: bool,
    /// A priority was raised: items of one priority need not stand in the order of their ages.
    raised: bool,
}

impl Ready {
    pub(super) fn new(max_age: u64, fair: bool) -> Self {
        Self {
            bands: BTreeMap::new(),
            ages: VecDeque::new(),
            placed: 0,
            len: 0,
            max_age,
            fair,
            aged_last: false,
            raised: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// An item has become ready at this time, with the same ticket for its place and its age. Who looked at the clock first need
    /// not come first: it counts as no older than the one before it.
    pub(super) fn push(&mut self, ticket: Ticket, priority: i32, tenant: u64, since: u64, holder: &impl Holder) {
        self.len += 1;
        let since = self.ages.back().map_or(since, |(before, _)| since.max(*before));
        self.ages.push_back((since, ticket));
        self.place(ticket, priority, tenant);
        self.sweep(holder);
    }

    /// An item that is ready has a higher priority now, and another ticket for its place. Its age stays.
    pub(super) fn raise(&mut self, ticket: Ticket, priority: i32, tenant: u64, holder: &impl Holder) {
        self.raised = true;
        self.place(ticket, priority, tenant);
        self.sweep(holder);
    }

    fn place(&mut self, ticket: Ticket, priority: i32, tenant: u64) {
        let fair = self.fair;
        self.bands.entry(Reverse(priority)).or_insert_with(|| Band::new(fair)).push(ticket, tenant);
        self.placed += 1;
    }

    /// Whether age may bring an item forward: not if all come in the order of their ages anyway.
    pub(super) fn is_timed(&self) -> bool {
        self.fair || self.raised || self.bands.len() > 1
    }

    /// The place in the table of the next one, which is not ready any more then.
    pub(super) fn pop(&mut self, now: u64, holder: &impl Holder) -> Option<u32> {
        let aged = self.oldest(holder).filter(|(since, _)| now.saturating_sub(*since) >= self.max_age);
        let ticket = match aged {
            Some((_, oldest)) if !self.aged_last => {
                self.aged_last = self.fair || !self.is_first(oldest, holder);
                if self.aged_last { oldest } else { self.first(holder)? }
            }
            _ => {
                self.aged_last = false;
                self.first(holder)?
            }
        };
        self.len -= 1;
        if self.len == 0 {
            self.clear();
        }
        Some(ticket.at)
    }

    /// The one that has waited for the longest time.
    fn oldest(&mut self, holder: &impl Holder) -> Option<(u64, Ticket)> {
        while let Some((since, ticket)) = self.ages.front().copied() {
            if holder.holds_age(ticket) {
                return Some((since, ticket));
            }
            self.ages.pop_front();
        }
        None
    }

    /// Whether an item's place is before all others', so that its age makes no difference. Only if there are no tenants.
    fn is_first(&mut self, ticket: Ticket, holder: &impl Holder) -> bool {
        let bands = self.bands.values_mut();
        let fronts = bands.filter_map(|band| {
            let (front, passed_over) = band.front(|ticket| holder.holds_place(ticket));
            self.placed -= passed_over;
            front
        });
        fronts.map(|front| front.at).next() == Some(ticket.at)
    }

    /// The first one of the tenant whose turn it is, of the highest priority.
    fn first(&mut self, holder: &impl Holder) -> Option<Ticket> {
        loop {
            let mut entry = self.bands.first_entry()?;
            let (found, passed_over) = entry.get_mut().pop(|ticket| holder.holds_place(ticket));
            self.placed -= passed_over + usize::from(found.is_some());
            if found.is_some() {
                return found;
            }
            entry.remove();
        }
    }

    /// There are leftovers only. What a flood has taken is given back; a queue that is always nearly empty is not to allocate
    /// each time.
    fn clear(&mut self) {
        if self.bands.len() > 1 {
            self.bands.clear();
        }
        self.bands.values_mut().for_each(Band::clear);
        (self.placed, self.raised) = (0, false);
        self.ages.clear();
        self.ages.shrink_to(crate::defaults::QUEUE_KEPT_CAPACITY);
    }

    /// Sweeps out leftovers, if most are.
    fn sweep(&mut self, holder: &impl Holder) {
        let bound = 2 * self.len + 64;
        if self.ages.len() > bound {
            self.ages.retain(|(_, ticket)| holder.holds_age(*ticket));
            self.ages.shrink_to(bound);
        }
        if self.placed > bound {
            self.placed = 0;
            self.bands.retain(|_, band| {
                band.retain(|ticket| holder.holds_place(ticket));
                self.placed += band.len();
                band.len() > 0
            });
        }
    }
}
