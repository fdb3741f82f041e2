//! What a driver is told to do.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Driver {
    Watchkeeper,
    KubeRs,
    ClientGo,
}

impl Driver {
    /// The program, as it is built.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Watchkeeper => "drive-watchkeeper",
            Self::KubeRs => "drive-kube-rs",
            Self::ClientGo => "drive-client-go",
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Watchkeeper => "watchkeeper",
            Self::KubeRs => "kube-rs",
            Self::ClientGo => "client-go",
        })
    }
}

/// One line of the comparison: a driver and its work. Two that are equal are the same line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Configuration {
    pub(crate) driver: Driver,
    pub(crate) work: Work,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    Informer {
        mode: &'static str,
        handler: &'static str,
        handlers: u32,
        pods: u32,
    },
    /// Reads of a cache that has another index for them, which would cost something in other phases.
    Reads {
        mode: &'static str,
        pods: u32,
    },
    Queue {
        producers: u32,
        consumers: u32,
    },
}

impl Configuration {
    pub(crate) const fn informer(
        driver: Driver,
        mode: &'static str,
        handler: &'static str,
        handlers: u32,
        pods: u32,
    ) -> Self {
        Self { driver, work: Work::Informer { mode, handler, handlers, pods } }
    }

    pub(crate) const fn reads(driver: Driver, mode: &'static str, pods: u32) -> Self {
        Self { driver, work: Work::Reads { mode, pods } }
    }

    pub(crate) const fn queue(driver: Driver, producers: u32, consumers: u32) -> Self {
        Self { driver, work: Work::Queue { producers, consumers } }
    }

    /// How many pods the server must have; a queue needs no server.
    pub(crate) fn pods(&self) -> Option<u32> {
        match self.work {
            Work::Informer { pods, .. } | Work::Reads { pods, .. } => Some(pods),
            Work::Queue { .. } => None,
        }
    }

    pub(crate) fn mode(&self) -> &'static str {
        match self.work {
            Work::Informer { mode, .. } | Work::Reads { mode, .. } => mode,
            Work::Queue { .. } => "queue",
        }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.work {
            Work::Informer { mode, handler, handlers, pods } => {
                write!(f, "{} {mode}, {handlers} x {handler}, {} pods", self.driver, thousands(pods.into()))
            }
            Work::Reads { mode, pods } => {
                write!(f, "{} {mode}, reads, {} pods", self.driver, thousands(pods.into()))
            }
            Work::Queue { producers, consumers } => {
                write!(f, "{} queue, {producers} producers, {consumers} consumers", self.driver)
            }
        }
    }
}

/// A configuration, and how much it has to do.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) configuration: Configuration,
    /// Empty for a queue.
    pub(crate) phases: &'static str,
    /// Events at full speed, or items of a queue.
    pub(crate) count: u32,
}

/// Events go round over so many pods.
const OVER: u32 = 10_000;
const RATE: u32 = 1_000;
const RATED_EVENTS: u32 = 10_000;

impl Task {
    pub(crate) fn arguments(&self, server: &str) -> Vec<String> {
        let words: Vec<String> = match self.configuration.work {
            Work::Informer { mode, handler, handlers, pods } => {
                self.informer_arguments(server, mode, handler, handlers, pods)
            }
            Work::Reads { mode, pods } => self.informer_arguments(server, mode, "keys", 1, pods),
            Work::Queue { producers, consumers } => {
                [("producers", producers), ("consumers", consumers), ("items", self.count)]
                    .into_iter()
                    .flat_map(|(name, value)| [format!("--{name}"), value.to_string()])
                    .collect()
            }
        };
        let command = match self.configuration.work {
            Work::Informer { .. } | Work::Reads { .. } => "informer",
            Work::Queue { .. } => "queue",
        };
        std::iter::once(command.to_owned()).chain(words).collect()
    }

    fn informer_arguments(&self, server: &str, mode: &str, handler: &str, handlers: u32, pods: u32) -> Vec<String> {
        [
            ("server", server.to_owned()),
            ("mode", mode.to_owned()),
            ("handler", handler.to_owned()),
            ("handlers", handlers.to_string()),
            ("phases", self.phases.to_owned()),
            ("events", self.count.to_string()),
            ("over", OVER.min(pods).to_string()),
            ("rate", RATE.to_string()),
            ("rated-events", RATED_EVENTS.to_string()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [format!("--{name}"), value])
        .collect()
    }
}

/// A number as people write it.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
