//! What is a driver asked to do?

use clap::{Args, ValueEnum};

/// Be an informer, and do what the phases say.
#[derive(Debug, Args)]
pub(crate) struct InformerArguments<M: ValueEnum + Clone + Send + Sync + 'static> {
    /// The load server, as it said where it is
    #[arg(long, value_name = "URL")]
    pub(crate) server: String,

    /// How objects are listed and kept
    #[arg(long, value_enum)]
    pub(crate) mode: M,

    /// What is done with each event
    #[arg(long, value_enum)]
    pub(crate) handler: Handler,

    /// How many handlers there are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) handlers: u32,

    /// What is measured, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    pub(crate) phases: Vec<Phase>,

    /// How many events come at full speed
    #[arg(long, value_name = "C", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) events: u64,

    /// Over how many pods events are spread; all, if it is not said
    #[arg(long, value_name = "O", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) over: Option<u64>,

    /// How many of the rated events come in a second
    #[arg(long, value_name = "R", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: u64,

    /// How many events come at that rate
    #[arg(long, value_name = "C", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rated_events: u64,
}

/// What a handler does with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Handler {
    /// Takes namespace and name of the object, and its version
    Keys,
    /// Makes a struct of seven fields of the new object; watchkeeper alone
    Seven,
    /// Has the whole new pod, and reads a few fields
    Decode,
}

/// What is measured. The order is that in which it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Phase {
    Sync,
    Relist,
    Events,
    Latency,
    Reads,
}

/// What an option's value is called on the command line.
pub(crate) fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
