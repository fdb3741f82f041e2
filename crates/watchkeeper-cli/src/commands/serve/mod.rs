//! `watchkeeper serve`: a Kubernetes API from memory, on a port.
//!
//! | file | answers |
//! |---|---|
//! | `load` | what is in the cluster at the beginning |
//! | `manifests` | which objects are in a file of YAML or JSON |
//! | `save` | where the state goes |
//! | `faults` | what goes wrong, on demand |
//! | `rules` | who may do what |
//! | `kubeconfig` | how clients find the server |

mod faults;
mod kubeconfig;
mod load;
mod manifests;
mod rules;
mod save;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::{ApiServer, Controllers, ListenError, ListenOptions, Listening, Namespaces};

use self::kubeconfig::KubeconfigFile;
use self::save::Saver;
use crate::failure::{Exit, Failure, Outcome};
use crate::interrupt;
use crate::living::{Living, LivingOptions};
use crate::terminal::{count, escape_lines};

const EXAMPLES: &str = "\
Examples:
  watchkeeper serve                               an empty cluster, until Ctrl-C
  watchkeeper serve --demo                        a living one
  watchkeeper serve --load manifests/
  watchkeeper serve --load state --save state     goes on where it ended
  watchkeeper serve --demo --faults faults.yaml   breaks on demand
In a script, the path of the kubeconfig is on stdout when it is ready:
  watchkeeper serve > ready & until [ -s ready ]; do sleep 0.1; done
  export KUBECONFIG=$(cat ready)";

/// Options of `watchkeeper serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The port [default: any that is free]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// The address to listen on
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,

    /// Listen also where other machines can reach it: who has the token can do everything
    #[arg(long)]
    allow_other_addresses: bool,

    /// One more name by which clients may call the server, besides localhost and its address
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// Where to write the kubeconfig; a file that is not one of ours is left alone
    #[arg(long, value_name = "FILE", default_value = "watchkeeper.kubeconfig")]
    kubeconfig: PathBuf,

    /// Leave the kubeconfig there at the end
    #[arg(long)]
    keep: bool,

    /// Speak HTTP without TLS; kubectl needs TLS, because it sends no token without
    #[arg(long)]
    http: bool,

    /// What clients have to show [default: 256 random bits]
    #[arg(long, value_name = "TOKEN", hide_default_value = true)]
    token: Option<String>,

    /// What is there at the beginning: a saved state, a file of YAML or JSON, or a folder of them
    #[arg(long, value_name = "FILE", conflicts_with = "demo")]
    load: Vec<PathBuf>,

    /// Save the state there at the end
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// And as often as this
    #[arg(long, value_name = "TIME", requires = "save", value_parser = crate::time::duration)]
    save_every: Option<Duration>,

    /// What goes wrong: rules, as YAML or JSON; docs/apiserver.md has the format
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,

    /// Where objects may be created: in namespaces that are there, or in any, which are made then
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = NamespacesOption::Strict)]
    namespaces: NamespacesOption,

    /// Who may do what: users with tokens and their rights, as YAML or JSON; docs/apiserver.md has the format
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Neither remove what belongs to something that is gone, nor empty namespaces: a kube-controller-manager does
    #[arg(long, conflicts_with = "demo")]
    no_controllers: bool,

    /// Serve a living cluster
    #[arg(long)]
    demo: bool,

    /// How many objects the living cluster has, roughly
    #[arg(long, value_name = "N", default_value_t = LivingOptions::default().objects, requires = "demo")]
    objects: usize,

    /// Which living cluster: the same seed makes the same one
    #[arg(long, value_name = "N", default_value_t = LivingOptions::default().seed, requires = "demo")]
    seed: u64,

    /// How many writes a second there are in the living cluster, roughly
    #[arg(long, value_name = "N", default_value_t = LivingOptions::default().rate, requires = "demo")]
    rate: f64,
}

/// Where objects may be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NamespacesOption {
    // Only in namespaces that are there, as in a cluster. (Said in the help of the option, to keep that short.)
    Strict,
    // Anywhere: a namespace that is not there is made.
    OnDemand,
}

/// Serves until it is interrupted.
pub(crate) async fn run(options: Options) -> Outcome {
    let token = interrupt::token();
    let mut builder = ApiServer::builder().namespaces(options.namespaces.into());
    if options.no_controllers {
        builder = builder.controllers(Controllers::Elsewhere);
    }
    if let Some(path) = &options.rules {
        builder = builder.rules(rules::read(path)?);
    }
    let server = builder.build();
    let saver = options.save.clone().map(Saver::new).transpose()?;
    let kubeconfig = KubeconfigFile::at(&options.kubeconfig).await?;
    // Whoever does not want to wait for it ends it: nothing is saved then, because it is not all there.
    let Some(filled) = token.run_until_cancelled(fill(&options, &server)).await else {
        return Ok(Exit::Interrupted);
    };
    let (content, living) = filled?;
    let saving = match &saver {
        // What cannot be saved is to be known before there is anything to lose.
        Some(saver) => {
            saver.save(&server).await?;
            saver.every(options.save_every, &server)
        }
        None => CancellationToken::new().drop_guard(),
    };
    // Rules count from the moment that they begin: what the living cluster asked for at its start is not counted.
    let fault_rules = match &options.faults {
        Some(path) => faults::begin(path, &server).await?,
        None => 0,
    };

    let listening = server.listen(options.listen()).await.map_err(|error| cannot_listen(&options, &error))?;
    let written = kubeconfig.write(&listening).await?;
    tell(&options, &listening, &content, fault_rules, &written.shell_path());
    announce(&written);

    token.cancelled().await;
    drop(saving);
    listening.shutdown().await;
    if let Some(living) = living {
        living.stop().await;
    }
    if !options.keep {
        written.remove();
    }
    if let Some(saver) = &saver {
        saver.save(&server).await?;
        eprintln!("saved to {}", escape_lines(&saver.path().display().to_string()));
    }
    Ok(Exit::Ok)
}

impl Options {
    fn listen(&self) -> ListenOptions {
        let mut listen = if self.http { ListenOptions::default() } else { ListenOptions::with_tls() };
        listen.address = SocketAddr::new(self.address, self.port);
        listen.allow_other_addresses = self.allow_other_addresses;
        listen.allowed_hosts = self.allow_host.clone();
        listen.token = self.token.clone();
        listen
    }
}

impl From<NamespacesOption> for Namespaces {
    fn from(option: NamespacesOption) -> Self {
        match option {
            NamespacesOption::Strict => Self::Strict,
            NamespacesOption::OnDemand => Self::OnDemand,
        }
    }
}

/// Puts there what is to be there, and says in a few words what that is.
async fn fill(options: &Options, server: &ApiServer) -> Outcome<(String, Option<Living>)> {
    if options.demo {
        return Ok(("a living cluster".to_owned(), Some(begin_life(options, server).await?)));
    }
    let mut paths = Vec::new();
    for path in &options.load {
        // The first run of a server that goes on where it ended has nothing to go on from.
        if options.save.as_ref() == Some(path) && !path.exists() {
            eprintln!("{} is not there yet: beginning empty", escape_lines(&path.display().to_string()));
        } else {
            paths.push(path.clone());
        }
    }
    let (server, make_namespaces) = (server.clone(), options.namespaces == NamespacesOption::OnDemand);
    let loading = tokio::task::spawn_blocking(move || load::load(paths, &server, make_namespaces));
    let loaded = loading.await.map_err(|error| Failure::new(Exit::Error, "nothing was loaded").because(error))??;
    let content = match loaded {
        0 => "an empty cluster".to_owned(),
        1 => "a cluster with 1 object".to_owned(),
        loaded => format!("a cluster with {} objects", count(loaded)),
    };
    Ok((content, None))
}

async fn begin_life(options: &Options, server: &ApiServer) -> Outcome<Living> {
    let life =
        LivingOptions { objects: options.objects, seed: options.seed, rate: options.rate, ..LivingOptions::default() };
    let failed = |why: String| Failure::new(Exit::Error, "the living cluster cannot be made").because(why);
    // A large one takes its time, and whoever waits here can leave.
    let server = server.clone();
    let starting = tokio::spawn(async move { Living::start(&server, life, CancellationToken::new()).await });
    starting.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
}

fn cannot_listen(options: &Options, error: &ListenError) -> Failure {
    let address = SocketAddr::new(options.address, options.port);
    match error {
        ListenError::NotLoopback(_) => Failure::usage(format!("{address} can be reached from other machines"))
            .because("who reaches it and has the token can do everything")
            .try_this("leave --address out, or add --allow-other-addresses"),
        ListenError::Bind { source, .. } => {
            let failure = Failure::new(Exit::Error, format!("cannot listen on {address}")).because(source);
            match source.kind() {
                std::io::ErrorKind::AddrInUse => failure.try_this("leave --port out: any free port is taken then"),
                std::io::ErrorKind::PermissionDenied => failure.try_this("take a port above 1023, or leave --port out"),
                _ => failure.try_this("name an address of this machine: --address 127.0.0.1"),
            }
        }
        ListenError::Token => Failure::usage("the token cannot be used").because(error),
        error => Failure::new(Exit::Error, format!("cannot listen on {address}"))
            .because(error)
            .try_this("look at --allow-host"),
    }
}

/// Where it is and how to use it, for people.
fn tell(options: &Options, listening: &Listening, content: &str, rules: usize, kubeconfig: &str) {
    let rules = match rules {
        0 => String::new(),
        1 => ", with 1 rule of faults".to_owned(),
        rules => format!(", with {rules} rules of faults"),
    };
    let mut text = format!(
        "serving {content} at {}{rules}, until Ctrl-C\n  \
         export KUBECONFIG={kubeconfig}\n  \
         kubectl get pods -A\n  \
         watchkeeper watch pods -A\n",
        listening.url()
    );
    if options.http {
        text.push_str("kubectl gets 401 from it: without TLS it sends no token; leave --http out for kubectl\n");
    }
    // Who closes stderr does not want to know.
    let _ = std::io::stderr().write_all(escape_lines(&text).as_bytes());
}

/// The path, for scripts: nothing else is written there, and not before everything is ready.
fn announce(written: &kubeconfig::Written) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(written.line().as_bytes()).and_then(|()| stdout.flush());
}
