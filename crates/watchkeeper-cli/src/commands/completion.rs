//! `watchkeeper completion`

use std::io::Write as _;

use clap::Args;
use clap_complete::Shell;

use crate::cli;
use crate::failure::{Exit, Outcome};
use crate::terminal::{Output, is_reader_gone};

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
    let mut out = Output::stdout();
    match out.write_all(&script).and_then(|()| out.flush()) {
        Err(error) if !is_reader_gone(&error) => Err(error.into()),
        _ => Ok(Exit::Ok),
    }
}
