//! Is the output painted?

use std::ffi::OsStr;
use std::io::IsTerminal;

/// What `--color` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Always, also into a file.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Whether to paint what goes to this stream.
    ///
    /// For [`Color::Auto`], `NO_COLOR` forbids it, then `CLICOLOR_FORCE` asks for it, then `TERM=dumb` and `CLICOLOR=0`
    /// forbid it; where none of them speaks, a terminal is painted and nothing else.
    pub(crate) fn paints(self, stream: &impl IsTerminal) -> bool {
        self.decide(stream.is_terminal(), |name| std::env::var_os(name))
    }

    fn decide<T: AsRef<OsStr>>(self, terminal: bool, variable: impl Fn(&str) -> Option<T>) -> bool {
        let set = |name: &str| variable(name).is_some_and(|value| !value.as_ref().is_empty());
        let is = |name: &str, text: &str| variable(name).is_some_and(|value| value.as_ref() == text);
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if set("NO_COLOR") => false,
            Self::Auto if set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
            Self::Auto => terminal && !is("TERM", "dumb") && !is("CLICOLOR", "0"),
        }
    }
}

/// The colours of what is printed.
pub(crate) mod styles {
    use anstyle::{AnsiColor, Style};

    /// Something is new.
    pub(crate) const ADDED: Style = AnsiColor::Green.on_default();
    /// Something changed.
    pub(crate) const MODIFIED: Style = AnsiColor::Yellow.on_default();
    /// Something is gone.
    pub(crate) const DELETED: Style = AnsiColor::Red.on_default();
    /// What is seldom looked at: times.
    pub(crate) const DIM: Style = Style::new().dimmed();
    /// The header of a table.
    pub(crate) const HEADER: Style = Style::new().bold();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(terminal: bool, variables: &[(&str, &'static str)]) -> bool {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        Color::Auto.decide(terminal, find)
    }

    #[test]
    fn only_a_terminal_is_painted_by_itself() {
        assert!(auto(true, &[]));
        assert!(!auto(false, &[]));
        assert!(!auto(true, &[("TERM", "dumb")]));
    }

    #[test]
    fn the_environment_is_heard_in_its_order() {
        assert!(!auto(true, &[("NO_COLOR", "1")]));
        assert!(auto(true, &[("NO_COLOR", "")]), "an empty NO_COLOR says nothing");
        assert!(auto(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!auto(false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!auto(true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
        assert!(!auto(true, &[("CLICOLOR", "0")]));
    }

    #[test]
    fn the_flag_is_stronger_than_the_environment() {
        assert!(Color::Always.decide(false, |_| Some("1")));
        assert!(!Color::Never.decide(true, |name| (name == "CLICOLOR_FORCE").then_some("1")));
    }
}
