//! How many pods of each template there are to be, on the way from one template to the next.
//!
//! Counterpart: `rolling.go` of the deployment controller in `k8s.io/kubernetes/pkg/controller`.

use crate::living::views::{Amount, DeploymentSpec, replicas};

/// How far a rollout may stray from what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::living) struct Limits {
    pub(in crate::living) wanted: i64,
    /// So many more there may be.
    pub(in crate::living) surge: i64,
    /// So many may be missing.
    pub(in crate::living) unavailable: i64,
}

/// A ReplicaSet's numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::living) struct Count {
    /// How many it is told to have.
    pub(in crate::living) wanted: i64,
    /// How many it has.
    pub(in crate::living) present: i64,
    pub(in crate::living) available: i64,
}

impl Limits {
    /// What a Deployment says, or else a quarter each.
    pub(in crate::living) fn of(spec: &DeploymentSpec) -> Self {
        let wanted = replicas(spec.replicas);
        let rolling = spec.strategy.rolling_update.clone().unwrap_or_default();
        let surge = amount(rolling.max_surge.as_ref(), wanted, true);
        let mut unavailable = amount(rolling.max_unavailable.as_ref(), wanted, false).min(wanted);
        if surge == 0 && unavailable == 0 {
            // Else nothing could ever move.
            unavailable = 1;
        }
        Self { wanted, surge, unavailable }
    }

    /// How many are to be available at all times.
    pub(in crate::living) fn least(&self) -> i64 {
        (self.wanted - self.unavailable).max(0)
    }
}

/// The next step: how many the newest is to have, and the others, oldest first. Either the newest changes or the others.
pub(in crate::living) fn step(limits: Limits, newest: Count, others: &[Count]) -> (i64, Vec<i64>) {
    let stay: Vec<i64> = others.iter().map(|other| other.wanted).collect();
    let old: i64 = stay.iter().sum();
    if old == 0 {
        return (limits.wanted, stay);
    }
    let total = old + newest.wanted;
    let room = (limits.wanted + limits.surge - total).max(0);
    let next = newest.wanted.saturating_add(room).min(limits.wanted).max(newest.wanted.min(limits.wanted));
    if next != newest.wanted {
        return (next, stay);
    }
    let missing = newest.wanted - newest.available.min(newest.wanted);
    let mut spare = total - limits.least() - missing;
    let mut left = stay;
    // Those that do not work go first: nobody misses them.
    for (left, other) in left.iter_mut().zip(others) {
        let useless = (other.wanted - other.available).clamp(0, spare.max(0));
        *left -= useless;
        spare -= useless;
    }
    let available = newest.available.min(newest.wanted) + others.iter().map(|o| o.available.min(o.wanted)).sum::<i64>();
    let mut spare = spare.min(available - limits.least());
    for left in &mut left {
        let gone = (*left).clamp(0, spare.max(0));
        *left -= gone;
        spare -= gone;
    }
    (newest.wanted, left)
}

/// The same without overlap: the others go, and when they are gone the newest comes.
pub(in crate::living) fn recreate(wanted: i64, newest: Count, others: &[Count]) -> (i64, Vec<i64>) {
    let are_gone = others.iter().all(|other| other.present == 0 && other.wanted == 0);
    (if are_gone { wanted } else { newest.wanted.min(wanted) }, vec![0; others.len()])
}

fn amount(amount: Option<&Amount>, of: i64, round_up: bool) -> i64 {
    let percent = |percent: i64| {
        let hundredfold = of.saturating_mul(percent.clamp(0, 1000));
        if round_up { hundredfold.saturating_add(99) / 100 } else { hundredfold / 100 }
    };
    match amount {
        None => percent(25),
        Some(Amount::Number(number)) => (*number).clamp(0, i64::from(i32::MAX)),
        Some(Amount::Part(text)) => match text.strip_suffix('%').and_then(|number| number.parse().ok()) {
            Some(number) => percent(number),
            None => percent(25),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(wanted: i64, available: i64) -> Count {
        Count { wanted, present: wanted, available }
    }

    #[test]
    fn a_rollout_never_has_too_many_or_too_few_and_comes_to_its_end() {
        for wanted in 0..30 {
            for (surge, unavailable) in [(0, 1), (1, 0), (3, 2), (40, 40)] {
                let limits = Limits { wanted, surge, unavailable };
                let (mut newest, mut others) = (count(0, 0), vec![count(wanted, wanted), count(3, 0)]);
                for round in 0.. {
                    assert!(round < 400, "no end: {limits:?} {newest:?} {others:?}");
                    let (next, left) = step(limits, newest, &others);
                    if next == newest.wanted && left.iter().sum::<i64>() == 0 && newest.available == wanted {
                        break;
                    }
                    newest.wanted = next;
                    for (other, left) in others.iter_mut().zip(left) {
                        // The worst case: all that goes was available.
                        *other = count(left, other.available.min(left));
                    }
                    let available = newest.available + others.iter().map(|other| other.available).sum::<i64>();
                    assert!(available >= limits.least(), "{limits:?}: {available}");
                    // One more gets ready.
                    newest.available = (newest.available + 1).min(newest.wanted);
                }
            }
        }
    }

    #[test]
    fn amounts_are_numbers_or_parts_whatever_they_say() {
        let part = |text: &str| Some(Amount::Part(text.to_owned()));
        assert_eq!(amount(part("25%").as_ref(), 10, true), 3);
        assert_eq!(amount(part("25%").as_ref(), 10, false), 2);
        assert_eq!(amount(part("a lot").as_ref(), 10, false), 2);
        assert_eq!(amount(part("99999999999999%").as_ref(), 10, false), 100);
        assert_eq!(amount(Some(&Amount::Number(-4)), 10, false), 0);
        assert_eq!(amount(None, i64::from(i32::MAX), true), 536_870_912);
    }

    #[test]
    fn without_overlap_the_old_go_before_the_new_come() {
        assert_eq!(recreate(3, count(0, 0), &[count(3, 3)]), (0, vec![0]));
        assert_eq!(recreate(3, count(0, 0), &[Count { wanted: 0, present: 1, available: 0 }]), (0, vec![0]));
        assert_eq!(recreate(3, count(0, 0), &[count(0, 0)]), (3, vec![0]));
    }
}
