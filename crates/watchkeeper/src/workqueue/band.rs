//! The items of one priority, and whose turn it is.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::ready::Ticket;

/// Tickets of one priority.
pub(super) enum Band {
    /// First in, first out.
    Plain(VecDeque<Ticket>),
    /// Tenants take turns.
    Fair {
        lanes: HashMap<u64, VecDeque<Ticket>>,
        /// Tenants with tickets, in the order of their turns.
        turns: VecDeque<u64>,
    },
}

impl Band {
    pub(super) fn new(fair: bool) -> Self {
        match fair {
            true => Self::Fair { lanes: HashMap::new(), turns: VecDeque::new() },
            false => Self::Plain(VecDeque::new()),
        }
    }

    pub(super) fn push(&mut self, ticket: Ticket, tenant: u64) {
        match self {
            Self::Plain(lane) => lane.push_back(ticket),
            Self::Fair { lanes, turns } => {
                let lane = lanes.entry(tenant).or_default();
                if lane.is_empty() {
                    turns.push_back(tenant);
                }
                lane.push_back(ticket);
            }
        }
    }

    /// The first ticket that still holds, of the tenant whose turn it is; and how many did not.
    pub(super) fn pop(&mut self, holds: impl Fn(Ticket) -> bool) -> (Option<Ticket>, usize) {
        let mut passed_over = 0;
        match self {
            Self::Plain(lane) => (first(lane, &holds, &mut passed_over), passed_over),
            Self::Fair { lanes, turns } => {
                while let Some(tenant) = turns.pop_front() {
                    let Some(lane) = lanes.get_mut(&tenant) else { continue };
                    let found = first(lane, &holds, &mut passed_over);
                    match lane.is_empty() {
                        true => drop(lanes.remove(&tenant)),
                        false => turns.push_back(tenant),
                    }
                    if found.is_some() {
                        return (found, passed_over);
                    }
                }
                (None, passed_over)
            }
        }
    }

    /// The first ticket that still holds, if all are of one tenant; and how many did not.
    pub(super) fn front(&mut self, holds: impl Fn(Ticket) -> bool) -> (Option<Ticket>, usize) {
        let Self::Plain(lane) = self else { return (None, 0) };
        let before = lane.len();
        while lane.front().is_some_and(|ticket| !holds(*ticket)) {
            lane.pop_front();
        }
        (lane.front().copied(), before - lane.len())
    }

    /// Only those that hold stay.
    pub(super) fn retain(&mut self, holds: impl Fn(Ticket) -> bool) {
        match self {
            Self::Plain(lane) => lane.retain(|ticket| holds(*ticket)),
            Self::Fair { lanes, turns } => {
                lanes.retain(|_, lane| {
                    lane.retain(|ticket| holds(*ticket));
                    !lane.is_empty()
                });
                turns.retain(|tenant| lanes.contains_key(tenant));
            }
        }
    }

    /// How many tickets there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain(lane) => lane.len(),
            Self::Fair { lanes, .. } => lanes.values().map(VecDeque::len).sum(),
        }
    }

    /// Removes all. What a flood has taken is given back.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Plain(lane) => {
                lane.clear();
                lane.shrink_to(crate::defaults::QUEUE_KEPT_CAPACITY);
            }
            Self::Fair { .. } => *self = Self::new(true),
        }
    }
}

fn first(lane: &mut VecDeque<Ticket>, holds: impl Fn(Ticket) -> bool, passed_over: &mut usize) -> Option<Ticket> {
    while let Some(ticket) = lane.pop_front() {
        if holds(ticket) {
            return Some(ticket);
        }
        *passed_over += 1;
    }
    None
}
