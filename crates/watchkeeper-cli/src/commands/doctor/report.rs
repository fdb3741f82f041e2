//! How is a check told, and how does the program end?

use std::io::{self, Write as _};

use serde::Serialize;

use super::Format;
use crate::failure::{Exit, Failure};
use crate::terminal::{Color, Output, escape_json, escape_lines, escape_text, pad_to, styles};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    Warning,
    Failed,
    Skipped,
}

/// One check: what was looked at, what was found, and what to do.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Check {
    name: &'static str,
    state: State,
    found: String,
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The server says no: that has an exit code of its own.
    #[serde(skip)]
    refused: bool,
}

/// All checks so far. In text, each is printed when it is there.
pub(super) struct Report {
    format: Format,
    paint: bool,
    out: Output,
    checks: Vec<Check>,
    manifest: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Ok, found)
    }

    pub(super) fn warning(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Warning, found)
    }

    pub(super) fn failed(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Failed, found)
    }

    pub(super) fn skipped(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Skipped, found)
    }

    fn new(name: &'static str, state: State, found: impl Into<String>) -> Self {
        Self { name, state, found: found.into(), remedy: None, refused: false }
    }

    /// What a failed command would have said.
    pub(super) fn of_failure(name: &'static str, failure: &Failure) -> Self {
        let text = failure.to_string();
        let (mut found, mut remedy) = (String::new(), None);
        for line in text.lines() {
            match (line.strip_prefix("error: "), line.strip_prefix("  why: "), line.strip_prefix("  try: ")) {
                (Some(what), ..) => found.push_str(what),
                (_, Some(why), _) => found.push_str(&format!(": {why}")),
                // Whoever reads this has called the doctor already.
                (.., Some(next)) => remedy = Some(next.to_owned()).filter(|next| !next.contains("watchkeeper doctor")),
                _ => {}
            }
        }
        let check = Self { remedy, ..Self::failed(name, found) };
        if failure.exit() == Exit::Forbidden { check.refused() } else { check }
    }

    /// What to do about it.
    pub(super) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// The server says no.
    pub(super) fn refused(self) -> Self {
        Self { refused: true, ..self }
    }
}

impl Report {
    pub(super) fn new(format: Format, color: Color) -> Self {
        let paint = format == Format::Text && color.paints(&io::stdout());
        Self { format, paint, out: Output::stdout(), checks: Vec::new(), manifest: None }
    }

    /// One more check has finished.
    pub(super) fn add(&mut self, check: Check) -> io::Result<()> {
        if self.format == Format::Text {
            let line = line(&check, self.paint);
            self.out.write_all(line.as_bytes())?;
            self.out.flush()?;
        }
        self.checks.push(check);
        Ok(())
    }

    /// Manifests that would put right what is missing.
    pub(super) fn manifest(&mut self, manifest: String) {
        self.manifest = Some(manifest);
    }

    /// The last words, and how to end.
    pub(super) fn finish(&mut self) -> io::Result<Exit> {
        let of = |state: State| self.checks.iter().filter(|check| check.state == state).count();
        let counts = [of(State::Ok), of(State::Warning), of(State::Failed), of(State::Skipped)];
        match self.format {
            Format::Text => {
                let [ok, warnings, failed, skipped] = counts;
                let noun = if warnings == 1 { "warning" } else { "warnings" };
                writeln!(self.out, "\n{ok} ok, {warnings} {noun}, {failed} failed, {skipped} skipped")?;
                if let Some(manifest) = &self.manifest {
                    let manifest = escape_lines(manifest);
                    writeln!(
                        self.out,
                        "\nThis would allow what is missing. For somebody who may do that:\n\n\
                         kubectl apply -f - <<'EOF'\n{manifest}EOF"
                    )?;
                }
            }
            Format::Json => {
                let [ok, warning, failed, skipped] = counts;
                let summary = serde_json::json!({"ok": ok, "warning": warning, "failed": failed, "skipped": skipped});
                let document = serde_json::json!({
                    "checks": self.checks, "summary": summary, "manifest": self.manifest,
                });
                let text = serde_json::to_string_pretty(&document).map_err(io::Error::other)?;
                writeln!(self.out, "{}", escape_json(&text))?;
            }
        }
        self.out.flush()?;
        let failed: Vec<&Check> = self.checks.iter().filter(|check| check.state == State::Failed).collect();
        Ok(match failed.as_slice() {
            [] => Exit::Ok,
            failed if failed.iter().all(|check| check.refused) => Exit::Forbidden,
            _ => Exit::Error,
        })
    }
}

fn line(check: &Check, paint: bool) -> String {
    let (word, style) = match check.state {
        State::Ok => ("ok", styles::ADDED),
        State::Warning => ("warning", styles::MODIFIED),
        State::Failed => ("FAILED", styles::DELETED),
        State::Skipped => ("skipped", styles::DIM),
    };
    let mut line = String::new();
    pad_to(&mut line, word, 9);
    if paint {
        line = format!("{style}{line}{style:#}");
    }
    pad_to(&mut line, check.name, 16);
    line.push_str(&escape_text(&check.found));
    line.push('\n');
    if let Some(remedy) = &check.remedy {
        line.push_str(&format!("{:25}try: {}\n", "", escape_text(remedy)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cannot_control_the_terminal() {
        let check = Check::warning("server", "version \x1b[2J\n").with_remedy("\x1b]0;x\x07");
        let text = line(&check, false);
        assert_eq!(text, "warning  server          version ^[[2J\\n\n                         try: ^[]0;x^G\n");
        assert!(line(&check, true).starts_with("\x1b["));
    }

    #[test]
    fn a_failure_of_a_command_is_a_check() {
        let failure = Failure::new(Exit::Forbidden, "cannot list pods").because("no").try_this("ask");
        let check = Check::of_failure("rights", &failure);
        assert_eq!((check.found.as_str(), check.remedy.as_deref()), ("cannot list pods: no", Some("ask")));
        assert!(check.refused && check.state == State::Failed);
    }
}
