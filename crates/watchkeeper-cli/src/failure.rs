//! What went wrong, why, and what to try: the only way in which a command fails.

use std::fmt;
use std::process::ExitCode;

use kube_client::core::Status;
use watchkeeper::{Error, ErrorKind};

use crate::output::PrintError;
use crate::terminal::{escape_lines, escape_text};

/// How the program ends. These numbers are documented and do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All went well.
    Ok = 0,
    /// Something failed that has no number of its own.
    Error = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// The kind or the object is not there, or there is none and `--exit-empty` was said.
    NotFound = 3,
    /// The server does not know who asks, or says no.
    Forbidden = 4,
    /// What was waited for did not come in time.
    Timeout = 5,
    /// Ctrl-C, or SIGTERM.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error for people.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    what: String,
    why: Option<String>,
    next: Option<String>,
}

/// What a command comes to.
pub(crate) type Outcome<T = Exit> = Result<T, Failure>;

impl Failure {
    /// What happened, in a few words.
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), why: None, next: None }
    }

    /// The command line makes no sense.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// Why it happened: often the words of whoever refused.
    pub(crate) fn because(mut self, why: impl fmt::Display) -> Self {
        self.why = Some(why.to_string());
        self
    }

    /// What to try.
    pub(crate) fn try_this(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// What happened and why, to be part of another failure.
    pub(crate) fn in_a_line(&self) -> String {
        match &self.why {
            Some(why) => format!("{}: {why}", self.what),
            None => self.what.clone(),
        }
    }

    /// How the program is to end.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// A request that failed; `what` says which.
    pub(crate) fn of_request(what: impl Into<String>, error: &kube_client::Error) -> Self {
        match error {
            kube_client::Error::Api(status) => Self::of_status(what, status),
            kube_client::Error::Auth(error) => Self::new(Exit::Forbidden, what)
                .because(error)
                .try_this("see whether the credentials of this user work: watchkeeper doctor"),
            error => Self::new(Exit::Error, what).because(chain(error)).try_this(REACH),
        }
    }

    fn of_status(what: impl Into<String>, status: &Status) -> Self {
        // A proxy in between answers without words of Kubernetes.
        let failure = match status.message.as_str() {
            "" => Self::new(exit_of(status.code), what)
                .because(format!("the answer was {} {}", status.code, status.reason)),
            message => Self::new(exit_of(status.code), what).because(message),
        };
        match status.code {
            401 => failure.try_this(WHO),
            403 => failure.try_this(RIGHTS),
            _ => failure,
        }
    }
}

const REACH: &str = "see what is between here and the server: watchkeeper doctor";
const WHO: &str = "the server does not know who asks; see the credentials of this context: watchkeeper doctor";
const RIGHTS: &str = "see which Role would allow it: watchkeeper doctor KIND";

fn exit_of(code: u16) -> Exit {
    match code {
        401 | 403 => Exit::Forbidden,
        404 => Exit::NotFound,
        _ => Exit::Error,
    }
}

/// An error with what it was made of. kube's own text often leaves the reason out.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// What an informer or a list says. Its text has the request, the reason and often the remedy.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.kind() {
            _ if error.is_unauthorized() || error.is_forbidden() => Exit::Forbidden,
            _ if error.is_not_found() => Exit::NotFound,
            ErrorKind::NotSynced => Exit::Timeout,
            _ => Exit::Error,
        };
        let failure = Self::new(exit, error.to_string());
        match error.kind() {
            _ if error.is_unauthorized() => failure.try_this(WHO),
            _ if error.is_forbidden() => failure.try_this(RIGHTS),
            ErrorKind::Connect => failure.try_this(REACH),
            _ => failure,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Error, "the output cannot be written").because(error)
    }
}

impl From<PrintError> for Failure {
    fn from(error: PrintError) -> Self {
        Self::new(Exit::Error, error.to_string())
    }
}

/// A server's words are shown, and must not control the terminal.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", escape_text(&self.what))?;
        if let Some(why) = &self.why {
            write!(f, "\n  why: {}", escape_text(why))?;
        }
        if let Some(next) = &self.next {
            write!(f, "\n  try: {}", escape_lines(next))?;
        }
        Ok(())
    }
}
