//! The differences that are known: `differences.txt`. Their number may only fall.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use watchkeeper_e2e::Failure;

/// What is known, by step.
#[derive(Debug, Default)]
pub(crate) struct Known(BTreeMap<String, Difference>);

#[derive(Debug)]
struct Difference {
    reason: String,
    /// Of what differs: a step that differs in another way is not known.
    fingerprint: String,
}

impl Known {
    /// Reads paragraphs: a line with the reason and a colon, and the steps, indented, each behind the fingerprint of what differs.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let mut known = BTreeMap::new();
        let mut reason = None;
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            match line.strip_prefix("  ") {
                None => reason = Some(line.strip_suffix(':').context("a reason ends with a colon")?),
                Some(line) => {
                    let (fingerprint, step) = line.split_once(' ').context("a fingerprint stands before a step")?;
                    let reason = reason.with_context(|| format!("{step} has no reason"))?.to_owned();
                    let difference = Difference { reason, fingerprint: fingerprint.to_owned() };
                    ensure!(known.insert(step.to_owned(), difference).is_none(), "{step} is there twice");
                }
            }
        }
        Ok(Self(known))
    }

    /// Whether it is known that a step's answers differ, and in this way.
    pub(crate) fn has(&self, step: &str, difference: &str) -> bool {
        self.0.get(step).is_some_and(|known| known.fingerprint == fingerprint(difference))
    }

    /// All steps.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All reasons, and how many steps each has.
    pub(crate) fn reasons(&self) -> BTreeMap<&str, usize> {
        let mut reasons = BTreeMap::new();
        for Difference { reason, .. } in self.0.values() {
            *reasons.entry(reason.as_str()).or_default() += 1;
        }
        reasons
    }
}

/// A few digits that another text would hardly have: FNV-1a.
pub(crate) fn fingerprint(difference: &str) -> String {
    let hash =
        difference.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_reason() {
        let known =
            Known::parse("# a comment\nEscapes:\n  1 a: b\n  2 c: d\n\nYAML:\n  3 e: f\n").expect("differences");
        assert_eq!(known.reasons(), BTreeMap::from([("Escapes", 2), ("YAML", 1)]));
        assert_eq!(known.steps().collect::<Vec<_>>(), ["a: b", "c: d", "e: f"]);
        assert!(Known::parse("  1 a: b\n").is_err());
        assert!(Known::parse("Escapes:\n  1 a: b\n  1 a: b\n").is_err());
    }

    #[test]
    fn a_step_that_differs_in_another_way_is_not_known() {
        let known = Known::parse(&format!("Escapes:\n  {} a: b\n", fingerprint("-1\n+2\n"))).expect("differences");
        assert!(known.has("a: b", "-1\n+2\n"));
        assert!(!known.has("a: b", "-1\n+3\n") && !known.has("c: d", "-1\n+2\n"));
    }

    /// How many differences there are at most. Whoever removes some lowers this; nobody raises it.
    const MOST: usize = 64;

    #[test]
    fn the_list_only_becomes_shorter() {
        let known = Known::parse(include_str!("differences.txt")).expect("differences");
        assert_eq!(
            known.steps().count(),
            MOST,
            "lower MOST when the list has become shorter; it may not become longer"
        );
    }

    #[test]
    fn every_reason_is_explained_in_the_documentation() {
        let known = Known::parse(include_str!("differences.txt")).expect("differences");
        let documentation = include_str!("../../../../docs/apiserver.md");
        let (_, different) = documentation.split_once("## What is different").expect("the section");
        for reason in known.reasons().keys() {
            assert!(different.contains(&format!("- **{reason}**")), "docs/apiserver.md does not explain: {reason}");
        }
    }
}
