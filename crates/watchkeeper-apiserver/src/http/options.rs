//! What a query asks for. Counterparts: `ListOptions` and its conversion, defaults and validation in
//! `k8s.io/apimachinery/pkg/apis/meta`.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::failure::{Cause, Failure};
use crate::validation::quoted;

/// The parameters that any verb may read. Unknown ones are ignored, of repeated ones the first counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) watch: bool,
    pub(crate) allow_watch_bookmarks: bool,
    pub(crate) resource_version: String,
    pub(crate) resource_version_match: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) dry_run: Vec<String>,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) include_object: String,
    pub(crate) verbose: bool,
    pub(crate) exclude: Vec<String>,
    pub(crate) field_validation: FieldValidation,
    pub(crate) field_manager: String,
    pub(crate) force: Option<bool>,
}

/// What is done about fields that there are not, or that come twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
    /// Something that is none.
    Other(String),
}

impl Options {
    /// Reads a query.
    pub(crate) fn of(query: &str) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut seen = BTreeSet::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "dryRun" => options.dry_run.push(value.into_owned()),
                "exclude" => options.exclude.push(value.into_owned()),
                name if seen.contains(name) => {}
                name => {
                    options.set(name, &value)?;
                    seen.insert(name.to_owned());
                }
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        match name {
            "labelSelector" => self.label_selector = value.to_owned(),
            "fieldSelector" => self.field_selector = value.to_owned(),
            "watch" => self.watch = boolean(value),
            "allowWatchBookmarks" => self.allow_watch_bookmarks = boolean(value),
            "resourceVersion" => self.resource_version = value.to_owned(),
            "resourceVersionMatch" => self.resource_version_match = value.to_owned(),
            "continue" => self.continue_token = value.to_owned(),
            "sendInitialEvents" => self.send_initial_events = Some(boolean(value)),
            "propagationPolicy" => self.propagation_policy = Some(value.to_owned()),
            "orphanDependents" => self.orphan_dependents = Some(boolean(value)),
            "includeObject" => self.include_object = value.to_owned(),
            "fieldManager" => self.field_manager = value.to_owned(),
            "force" => self.force = Some(boolean(value)),
            "verbose" => self.verbose = true,
            "fieldValidation" => {
                self.field_validation = match value {
                    "" | "Warn" => FieldValidation::Warn,
                    "Ignore" => FieldValidation::Ignore,
                    "Strict" => FieldValidation::Strict,
                    other => FieldValidation::Other(other.to_owned()),
                };
            }
            // Zero and less are no limit, and no timeout.
            "limit" => self.limit = usize::try_from(integer(value)?).unwrap_or(0),
            "timeoutSeconds" => {
                let seconds = u64::try_from(integer(value)?).unwrap_or(0);
                self.timeout = (seconds > 0).then_some(Duration::from_secs(seconds));
            }
            "gracePeriodSeconds" => self.grace_period_seconds = Some(integer(value)?),
            _ => {}
        }
        Ok(())
    }

    /// Refuses what a list or a watch may not ask for together, and fills in what is left out.
    pub(crate) fn validated(mut self) -> Result<Self, Failure> {
        if self.watch && matches!(self.resource_version.as_str(), "" | "0") && self.asks_for_nothing_special() {
            // The old way of watching from the start: all that there is, then what comes.
            self.send_initial_events = Some(true);
            self.resource_version_match = "NotOlderThan".to_owned();
        }
        let causes = if self.watch { self.watch_faults() } else { self.list_faults() };
        if causes.is_empty() { Ok(self) } else { Err(Failure::invalid_options("ListOptions", causes)) }
    }

    /// Whether this is a request without a trace. Anything but `All` is refused, and so is an unknown field validation.
    pub(crate) fn is_dry_run(&self, kind: &str) -> Result<bool, Failure> {
        let mut causes = Vec::new();
        if self.dry_run.iter().any(|value| value != "All") {
            let shown: Vec<String> = self.dry_run.iter().map(|value| quoted(value)).collect();
            causes.push(Cause::unsupported("dryRun", format!("[{}]", shown.join(",")), &["All"]));
        }
        if let FieldValidation::Other(value) = &self.field_validation {
            let supported = ["", "Ignore", "Strict", "Warn"];
            causes.push(Cause::unsupported("fieldValidation", quoted(value), &supported));
        }
        if causes.is_empty() { Ok(!self.dry_run.is_empty()) } else { Err(Failure::invalid_options(kind, causes)) }
    }

    fn asks_for_nothing_special(&self) -> bool {
        self.send_initial_events.is_none() && self.resource_version_match.is_empty()
    }

    fn list_faults(&self) -> Vec<Cause> {
        const MATCH: &str = "resourceVersionMatch";
        if self.send_initial_events.is_some() {
            return vec![Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")];
        }
        let mut causes = Vec::new();
        let version_match = self.resource_version_match.as_str();
        if version_match.is_empty() {
            return causes;
        }
        if self.resource_version.is_empty() {
            let text = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            causes.push(Cause::forbidden(MATCH, text));
        }
        if !self.continue_token.is_empty() {
            causes.push(Cause::forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(version_match, "Exact" | "NotOlderThan") {
            causes.push(Cause::unsupported(MATCH, quoted(version_match), &["Exact", "NotOlderThan", ""]));
        }
        if version_match == "Exact" && self.resource_version == "0" {
            let text = r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#;
            causes.push(Cause::forbidden(MATCH, text));
        }
        causes
    }

    fn watch_faults(&self) -> Vec<Cause> {
        const MATCH: &str = "resourceVersionMatch";
        let mut causes = Vec::new();
        let version_match = self.resource_version_match.as_str();
        match self.send_initial_events {
            None if version_match.is_empty() => return causes,
            None => {
                let text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                causes.push(Cause::forbidden(MATCH, text));
            }
            Some(_) if version_match != "NotOlderThan" => {
                let text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                causes.push(Cause::forbidden(MATCH, text));
            }
            Some(_) => {}
        }
        if !version_match.is_empty() && version_match != "NotOlderThan" {
            causes.push(Cause::unsupported(MATCH, quoted(version_match), &["NotOlderThan"]));
        }
        if !self.continue_token.is_empty() {
            causes.push(Cause::forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
        causes
    }
}

/// Everything but `false` and `0` is true, as in Go's conversion of queries.
fn boolean(value: &str) -> bool {
    !(value.eq_ignore_ascii_case("false") || value == "0")
}

fn integer(value: &str) -> Result<i64, Failure> {
    value.parse().map_err(|_| Failure::bad_request(not_a_number("ParseInt", value)))
}

/// A version, or what Go says of a text that is none.
pub(crate) fn revision(text: &str) -> Result<u64, String> {
    // Go's numbers without a sign have no sign at all.
    let parsed = if text.starts_with('+') { None } else { text.parse().ok() };
    parsed.ok_or_else(|| not_a_number("ParseUint", text))
}

/// What Go says of a text that is no number.
fn not_a_number(function: &str, value: &str) -> String {
    // Only signed numbers have signs.
    let digits = if function == "ParseInt" { value.strip_prefix(['-', '+']).unwrap_or(value) } else { value };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let reason = if is_number { "value out of range" } else { "invalid syntax" };
    format!("strconv.{function}: parsing {}: {reason}", quoted(value))
}
