//! `cargo xtask`: every command that a person or CI needs beyond plain cargo.

mod bench;
mod client_go;
mod cluster;
mod e2e;
mod go;
mod kubectl;
mod perf;
mod program;
mod serving;

use std::process::{Command, ExitCode};

const HELP: &str = "\
Usage: cargo xtask COMMAND

  check    formatting, lints and documentation, as CI checks them
  soak     the random tests of the API server and of informers at length: 100,000 requests of each kind, 500 seeds of
           faults for reflectors, 2,000 for informers and 8 for the controllers of the living cluster
  model    tries out in which orders the threads around a queue can run
  perf     latencies of readers and the writer beside each other, resident memory, and the cost of each stage in
           instructions (where there is valgrind) and in time (`perf --times`); release build, some minutes
  bench    watchkeeper, kube-rs and client-go side by side: writes bench/RESULTS.md and bench/plots; some forty minutes
  bench-quick
           the main rows of it in two to three minutes once built; fails if one falls below bench/floor.toml, which
           `bench-quick --write-floor` writes anew
  examples runs all examples that need no cluster
  picture  draws docs/demo.svg anew: what the demo shows after half a minute of faults
  program  builds the program for release, and checks its size, how soon it shows its first row, and that the demo runs
  client-go
           client-go itself on our server: informers, leader election, events, apply, patches, deletion, discovery;
           skipped where there is no Go, or no way to its modules
  kubectl  kubectl on our server: the one on the PATH or else one built from its sources, and Debian's old one;
           skipped where none can be had; `--built` leaves the one on the PATH out
           Both take `--kubeconfig FILE [--no-controllers]`, to see the same checks on another cluster.
  e2e [--short] [SUITE..]
           a real Kubernetes, built from its Go modules: `informers` (ours on its API server), `answers` (the same
           requests to both API servers), `components` (its controllers and scheduler on our server, and our example on
           its API server); or all of them. Writes docs/e2e.md, and takes minutes for each. `--short` is what CI runs:
           the first two with less of everything, and nothing is written. Skipped where there is no Go
  ci       all that CI does: `cargo test --workspace`, then `check`, `examples`, `program`, `client-go`, `kubectl`,
           `e2e --short`, `soak` and `model`
  help     this text";

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    let done = match command.as_deref() {
        Some("check") => check(),
        Some("examples") => examples(),
        Some("picture") => picture(),
        Some("program") => program::run(),
        Some("client-go") => client_go::run(),
        Some("kubectl") => kubectl::run(),
        Some("e2e") => e2e::run(),
        Some("soak") => soak(),
        Some("model") => model(),
        Some("ci") => {
            cargo("test", &["--workspace"], &[])
                && check()
                && examples()
                && program::run()
                && client_go::run()
                && kubectl::run()
                && e2e::run_short()
                && soak()
                && model()
        }
        Some("bench") => bench::run("full"),
        Some("bench-quick") => bench::run("quick"),
        Some("perf") => perf::run(std::env::args().any(|argument| argument == "--times")),
        Some("help" | "-h" | "--help") => {
            println!("{HELP}");
            true
        }
        None => {
            eprintln!("{HELP}");
            false
        }
        Some(other) => {
            eprintln!("error: there is no command {other:?}\n\n{HELP}");
            false
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check() -> bool {
    let doc = ["--workspace", "--no-deps", "--features", "watchkeeper/prometheus"];
    cargo("fmt", &["--all", "--check"], &[])
        && cargo("clippy", &["--workspace", "--all-targets", "--", "-D", "warnings"], &[])
        // Tests have the feature `prometheus`; without them it is off.
        && cargo("clippy", &["-p", "watchkeeper", "--", "-D", "warnings"], &[])
        && cargo("doc", &doc, &[("RUSTDOCFLAGS", "-D warnings")])
}

/// It does nothing without a cluster. (It has a test, which gives it one.)
const NEEDS_A_CLUSTER: &str = "readme";

fn examples() -> bool {
    let Ok(folder) = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples")) else {
        eprintln!("error: there is no folder examples");
        return false;
    };
    let file_names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = file_names.filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned())).collect();
    names.retain(|name| name != NEEDS_A_CLUSTER);
    names.sort();
    names.iter().all(|name| cargo("run", &["-p", "watchkeeper-examples", "--example", name], &[]))
}

fn picture() -> bool {
    let test = ["-p", "watchkeeper-cli", "--test", "screens", "the_screen_can_be_drawn_as_a_picture"];
    cargo("test", &test, &[("WATCHKEEPER_PICTURE", concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/demo.svg"))])
}

fn soak() -> bool {
    let test = |name| ["-p", "watchkeeper-apiserver", "--test", name];
    cargo("test", &test("random_requests"), &[("PROPTEST_CASES", "100000")])
        && cargo("test", &test("faults"), &[("WATCHKEEPER_SEEDS", "500")])
        && cargo("test", &test("informers"), &[("WATCHKEEPER_SEEDS", "2000")])
        && cargo("test", &["-p", "watchkeeper-cli", "living::tests::faults"], &[("WATCHKEEPER_SEEDS", "8")])
}

fn model() -> bool {
    let lints = ["-p", "watchkeeper", "--features", "model-check", "--test", "model", "--", "-D", "warnings"];
    cargo("clippy", &lints, &[]) && cargo("test", &lints[..6], &[])
}

/// Runs cargo in the repository, and says what it runs.
fn cargo(command: &str, arguments: &[&str], environment: &[(&str, &str)]) -> bool {
    eprintln!("$ cargo {command} {}", arguments.join(" "));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    match Command::new(cargo).arg(command).args(arguments).envs(environment.iter().copied()).current_dir(root).status()
    {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("error: cargo cannot be run: {error}");
            false
        }
    }
}
