//! `watchkeeper doctor`: what stands between this machine and a cluster's objects?
//!
//! The checks stand in the order in which a request meets what they look at. One that makes no sense after an earlier
//! one failed is skipped.
//!
//! | file | answers |
//! |---|---|
//! | `report` | how a check is told, and how the program ends |
//! | `ask` | how the server is asked |
//! | `kubeconfig` | which cluster, as whom |
//! | `network` | can it be reached, and is it the one that is meant |
//! | `certificate` | what is in a certificate |
//! | `server` | who am I, which version, is it well, what time is it |
//! | `rights` | may I list and watch, and what would allow it |
//! | `protocol` | streaming lists, bookmarks, compression, tables, idle connections |
//! | `memory` | what would it take to keep the objects |

mod ask;
mod certificate;
mod kubeconfig;
mod memory;
mod network;
mod protocol;
mod report;
mod rights;
mod server;

use std::io;

use clap::{Args, ValueEnum};

use self::report::{Check, Report};
use crate::cluster::{Access, AccessOptions, ScopeOptions, Target, kinds};
use crate::failure::{Exit, Outcome};
use crate::interrupt;
use crate::terminal::{Color, is_reader_gone};

/// What is looked at if nobody says.
const KINDS: &str = "pods,deployments.apps,nodes";

const EXAMPLES: &str = "\
Examples:
  watchkeeper doctor                     the current context: pods, deployments, nodes
  watchkeeper doctor pods,secrets -A     what may I see, and what would it take to keep it?
  watchkeeper doctor -o json | jq '.checks[] | select(.state != \"ok\")'
  watchkeeper doctor --slow              are silent connections cut? takes six minutes

Nothing is changed, and no secret is printed. Exit codes: 0 all is well, or there are warnings only; 4 the server does
not know you or says no; 1 anything else failed.";

/// Options of `watchkeeper doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The kinds that you want to list and watch [default: pods,deployments.apps,nodes]
    #[arg(value_name = "KIND,...")]
    kinds: Option<String>,

    #[command(flatten)]
    scope: ScopeOptions,

    /// For people, or for machines
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,

    /// Also find out whether silent connections are cut on the way: takes six minutes
    #[arg(long)]
    slow: bool,

    #[command(flatten)]
    access: AccessOptions,
}

/// How the checks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Checks everything.
pub(crate) async fn run(options: Options, color: Color) -> Outcome {
    let token = interrupt::token();
    let mut report = Report::new(options.output, color);
    let checked = token.run_until_cancelled(check(&options, &mut report)).await;
    let is_interrupted = checked.is_none();
    // What was found by then is told, and is whole.
    let checked = checked.unwrap_or_else(|| report.add(Check::skipped("the rest", "interrupted")));
    match checked.and_then(|()| report.finish()) {
        Ok(_) if is_interrupted => Ok(Exit::Interrupted),
        Ok(exit) => Ok(exit),
        Err(error) if is_reader_gone(&error) => Ok(Exit::Ok),
        Err(error) => Err(error.into()),
    }
}

async fn check(options: &Options, report: &mut Report) -> io::Result<()> {
    let Some(config) = kubeconfig::check(&options.access, report).await? else { return Ok(()) };
    let reached = match &config {
        Some(config) => network::check(config, options.access.request_timeout, report).await?,
        None => true,
    };
    let access = match reached {
        true => connect(options, report).await?,
        false => None,
    };
    let Some(access) = access else {
        for name in ["server", "credentials", "health", "clock", "kinds", "rights", "watching", "memory"] {
            report.add(Check::skipped(name, "the server cannot be reached"))?;
        }
        return Ok(());
    };
    checks_of_server(options, &access, config, report).await?;
    access.close().await;
    Ok(())
}

async fn checks_of_server(
    options: &Options,
    access: &Access,
    config: Option<kube_client::Config>,
    report: &mut Report,
) -> io::Result<()> {
    let is_kubernetes = server::version_and_clock(access, report).await?;
    let user = match is_kubernetes {
        true => server::credentials(access, report).await?,
        false => None,
    };
    let Some(user) = user else {
        for name in ["health", "kinds", "rights", "watching", "memory"] {
            let why = if is_kubernetes { "the server does not know who asks" } else { "it is no Kubernetes API" };
            report.add(Check::skipped(name, why))?;
        }
        return Ok(());
    };
    server::health(access, report).await?;
    let targets = targets(options, access, report).await?;
    let allowed = rights::check(access, &options.scope, &targets, &user, report).await?;
    let Some(first) = allowed.first() else {
        for name in ["watching", "memory"] {
            report.add(Check::skipped(name, "no kind may be listed and watched"))?;
        }
        return Ok(());
    };
    protocol::check(access, config, &options.scope, first, options.slow, report).await?;
    for target in &allowed {
        memory::check(access, &options.scope, target, report).await?;
    }
    Ok(())
}

/// A client. A credential plugin that does not end must not hold up everything.
async fn connect(options: &Options, report: &mut Report) -> io::Result<Option<Access>> {
    let connecting = {
        let access = options.access.clone();
        tokio::spawn(async move { access.connect().await })
    };
    let check = match tokio::time::timeout(options.access.request_timeout, connecting).await {
        Ok(Ok(Ok(access))) => return Ok(Some(access)),
        Ok(Ok(Err(failure))) => Check::of_failure("client", &failure),
        Ok(Err(_)) => Check::failed("client", "no client can be made for this kubeconfig"),
        Err(_) => Check::failed("client", "the credentials did not come in time")
            .with_remedy("run the credential plugin of this user by hand, or wait longer: --request-timeout"),
    };
    report.add(check)?;
    Ok(None)
}

/// The kinds that are meant. One that is not there does not hide the others.
async fn targets(options: &Options, access: &Access, report: &mut Report) -> io::Result<Vec<Target>> {
    let words = options.kinds.as_deref().unwrap_or(KINDS);
    let together = kinds::targets(access, &[words.to_owned()]).await;
    let targets = match together {
        Ok(targets) => targets,
        Err(failure) if !words.contains(',') => {
            report.add(Check::of_failure("kinds", &failure))?;
            Vec::new()
        }
        Err(_) => {
            let mut targets = Vec::new();
            for word in words.split(',').filter(|word| !word.is_empty()) {
                match kinds::targets(access, &[word.to_owned()]).await {
                    Ok(found) => targets.extend(found),
                    Err(failure) => report.add(Check::of_failure("kinds", &failure))?,
                }
            }
            targets
        }
    };
    if !targets.is_empty() {
        let names: Vec<String> = targets.iter().map(|target| target.resource.full_name()).collect();
        report.add(Check::ok("kinds", format!("{} can be listed and watched", names.join(", "))))?;
    }
    Ok(targets)
}
