//! The differences that are known: `differences.txt`. Their number may only fall.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use watchkeeper_e2e::Failure;

/// Why, by step.
#[derive(Debug, Default)]
pub(crate) struct Known(BTreeMap<String, String>);

impl Known {
    /// Reads paragraphs: a line with the reason and a colon, and the steps, indented.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let mut known = BTreeMap::new();
        let mut reason = None;
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            match line.strip_prefix("  ") {
                None => reason = Some(line.strip_suffix(':').context("a reason ends with a colon")?),
                Some(step) => {
                    let reason = reason.with_context(|| format!("{step} has no reason"))?;
                    ensure!(known.insert(step.to_owned(), reason.to_owned()).is_none(), "{step} is there twice");
                }
            }
        }
        Ok(Self(known))
    }

    /// Why a step's answers differ, if that is known.
    pub(crate) fn reason(&self, step: &str) -> Option<&str> {
        self.0.get(step).map(String::as_str)
    }

    /// All steps.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All reasons, and how many steps each has.
    pub(crate) fn reasons(&self) -> BTreeMap<&str, usize> {
        let mut reasons = BTreeMap::new();
        for reason in self.0.values() {
            *reasons.entry(reason.as_str()).or_default() += 1;
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_reason() {
        let known = Known::parse("# a comment\nEscapes:\n  a: b\n  c: d\n\nYAML:\n  e: f\n").expect("differences");
        assert_eq!(known.reason("c: d"), Some("Escapes"));
        assert_eq!(known.reason("e: f"), Some("YAML"));
        assert_eq!(known.reason("g: h"), None);
        assert!(Known::parse("  a: b\n").is_err());
        assert!(Known::parse("Escapes:\n  a: b\n  a: b\n").is_err());
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
