//! `watchkeeper completion`

use std::io::Write as _;

use clap::Args;
use clap_complete::Shell;

use crate::cli;
use crate::failure::{Exit, Outcome};

/// Options of `watchkeeper completion`.
#[derive(Debug, Args)]
#[command(after_help = "\
For example, for the shell that is running:
  source <(watchkeeper completion bash)
  watchkeeper completion zsh > \"${fpath[1]}/_watchkeeper\"
  watchkeeper completion fish | source")]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(options: Options) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut cli::command(None), "watchkeeper", &mut script);
    // A closed pipe is no reason to complain.
    let _ = std::io::stdout().write_all(&script);
    Ok(Exit::Ok)
}
