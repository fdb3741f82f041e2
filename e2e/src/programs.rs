//! The real programs: found in the user's cache folder, or built from their modules.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The programs of one release of Kubernetes.
#[derive(Debug, Clone)]
pub struct Programs {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub kube_apiserver: PathBuf,
    /// kubectl.
    pub kubectl: PathBuf,
    /// kube-controller-manager.
    pub kube_controller_manager: PathBuf,
    /// kube-scheduler.
    pub kube_scheduler: PathBuf,
    /// Of Kubernetes, as in `1.36.4`.
    pub version: String,
    /// Of etcd, likewise.
    pub etcd_version: String,
}

/// Why there are no programs.
#[derive(Debug)]
pub enum NotHere {
    /// This machine has not what it takes: what is missing, and how to get it.
    NoGo(String),
    /// It has, and they could not be built all the same.
    Failed(String),
}

impl Programs {
    /// Those in the cache folder. What is missing is built, which takes minutes.
    pub fn find() -> Result<Self, NotHere> {
        Self::of(true)
    }

    /// The same, for those who need but etcd and kube-apiserver: of the others only the paths are known.
    pub fn find_servers() -> Result<Self, NotHere> {
        Self::of(false)
    }

    fn of(all: bool) -> Result<Self, NotHere> {
        let kubernetes = Module::read("kubernetes", "k8s.io/kubernetes")?;
        let etcd = Module::read("etcd", "go.etcd.io/etcd/server/v3")?;
        let folder = cache_folder(&format!("kubernetes-{}", kubernetes.version))?;
        // Kubernetes writes its version into a program while linking it, and its API server does not start without.
        let mut numbers = kubernetes.version.split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let package = "k8s.io/component-base/version";
        let linker = format!(
            "-s -w -X {package}.gitVersion=v{} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} \
             -X {package}.gitTreeState=clean",
            kubernetes.version
        );
        let command = |name: &str, needed: bool| {
            let package = format!("k8s.io/kubernetes/cmd/{name}");
            if needed { kubernetes.program(&folder, name, &package, &linker) } else { Ok(program_path(&folder, name)) }
        };
        Ok(Self {
            etcd: etcd.program(&folder, "etcd", "go.etcd.io/etcd/server/v3", "-s -w")?,
            kube_apiserver: command("kube-apiserver", true)?,
            kubectl: command("kubectl", all)?,
            kube_scheduler: command("kube-scheduler", all)?,
            kube_controller_manager: command("kube-controller-manager", all)?,
            version: kubernetes.version.clone(),
            etcd_version: etcd.version,
        })
    }
}

/// A Go module of ours that names the modules of programs, and their versions.
struct Module {
    folder: PathBuf,
    /// Of the module with the programs.
    version: String,
}

impl Module {
    fn read(folder: &str, module: &str) -> Result<Self, NotHere> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let file = folder.join("go.mod");
        let text =
            fs::read_to_string(&file).map_err(|error| NotHere::Failed(format!("{}: {error}", file.display())))?;
        let version = text.lines().find_map(|line| {
            let mut words = line.trim().trim_start_matches("require ").split_whitespace();
            (words.next() == Some(module)).then(|| words.next()?.strip_prefix('v')).flatten()
        });
        let version =
            version.ok_or_else(|| NotHere::Failed(format!("{} names no version of {module}", file.display())))?;
        Ok(Self { folder, version: version.to_owned() })
    }

    /// The path of a program, which is built if it is not there.
    fn program(&self, folder: &Path, name: &str, package: &str, linker: &str) -> Result<PathBuf, NotHere> {
        let path = program_path(folder, name);
        if path.is_file() {
            return Ok(path);
        }
        eprintln!("building {name} {} once, which takes minutes", self.version);
        let started = Instant::now();
        // Under another name until it is whole.
        let unfinished = folder.join(format!("{name}.{}", std::process::id()));
        self.go(name, &["mod", "download"])?;
        let output = unfinished.to_string_lossy();
        self.go(name, &["build", "-mod=readonly", "-buildvcs=false", "-ldflags", linker, "-o", &output, package])?;
        fs::rename(&unfinished, &path).map_err(|error| NotHere::Failed(format!("{}: {error}", path.display())))?;
        eprintln!("{name} was built in {} s", started.elapsed().as_secs());
        Ok(path)
    }

    fn go(&self, name: &str, arguments: &[&str]) -> Result<(), NotHere> {
        let mut command = Command::new("go");
        // As the module says, whatever else Go was told.
        command.args(arguments).env("GOWORK", "off").env("CGO_ENABLED", "0").current_dir(&self.folder);
        match command.stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let last = said.lines().last().unwrap_or("it does not say why");
                Err(NotHere::Failed(format!("{name} cannot be built by `go {}`: {last}", arguments[0])))
            }
            Err(error) => Err(NotHere::NoGo(format!(
                "{name} cannot be built: go cannot be run ({error}); with Go on the PATH, and a module proxy that it \
                 reaches, all is built from the modules in e2e/kubernetes and e2e/etcd"
            ))),
        }
    }
}

fn program_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

fn cache_folder(name: &str) -> Result<PathBuf, NotHere> {
    let of_user = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = of_user("XDG_CACHE_HOME").or_else(|| Some(of_user("HOME")?.join(".cache")));
    let cache = cache.ok_or_else(|| {
        NotHere::Failed("there is no cache folder: neither XDG_CACHE_HOME nor HOME names one".to_owned())
    })?;
    let folder = cache.join("watchkeeper").join(name);
    fs::create_dir_all(&folder).map_err(|error| NotHere::Failed(format!("{}: {error}", folder.display())))?;
    Ok(folder)
}

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NoGo(text) | Self::Failed(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for NotHere {}
