//! Which cluster, and as whom?

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::Scheme;
use jiff::Timestamp;
use kube_client::Config;
use kube_client::config::{AuthInfo, ExecConfig, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::certificate::Certificate;
use super::report::{Check, Report};
use crate::cluster::{AccessOptions, shown};

const NAME: &str = "kubeconfig";
const DAY: i64 = 86_400;

/// Looks at the kubeconfig. `None` if there is no way to go on; the configuration is none for the cluster in memory.
pub(super) async fn check(options: &AccessOptions, report: &mut Report) -> io::Result<Option<Option<Config>>> {
    if options.demo {
        report.add(Check::ok(NAME, "none is needed: a cluster in memory"))?;
        return Ok(Some(None));
    }
    let (config, context) = match options.config().await {
        Ok(found) => found,
        Err(failure) => {
            report.add(Check::of_failure(NAME, &failure))?;
            return Ok(None);
        }
    };
    let files = files(options);
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let from = if names.is_empty() { "the service account of this pod".to_owned() } else { names.join(", ") };
    let way = credentials(&config.auth_info);
    report.add(Check::ok(NAME, format!("{from}: context {context}, server {}, {way}", shown(&config.cluster_url))))?;
    for file in &files {
        if let Some(mode) = readable_by_others(file) {
            let file = file.display();
            let found = format!("{file} can be read by other users of this machine (mode {mode:03o})");
            report.add(Check::warning(NAME, found).with_remedy(format!("chmod 600 {file}")))?;
        }
    }
    if config.accept_invalid_certs {
        let found = "insecure-skip-tls-verify is set: ANYBODY on the way can read and change everything, \
                     and take your credentials";
        let remedy = "remove it, and set certificate-authority-data of the cluster instead";
        report.add(Check::warning(NAME, found).with_remedy(remedy))?;
    }
    if config.cluster_url.scheme() == Some(&Scheme::HTTP) && !is_this_machine(&config) {
        let found = "the server's URL is http: everything, credentials too, goes over the network for all to read";
        report.add(Check::warning(NAME, found).with_remedy("use the server's https URL"))?;
    }
    if let Some(exec) = &config.auth_info.exec {
        report.add(plugin(exec))?;
    }
    if let Some(check) = client_certificate(&config.auth_info) {
        report.add(check)?;
    }
    Ok(Some(Some(config)))
}

/// The files that are read, in kubectl's order.
fn files(options: &AccessOptions) -> Vec<PathBuf> {
    if let Some(file) = &options.kubeconfig {
        return vec![file.clone()];
    }
    let listed = env::var_os("KUBECONFIG").filter(|list| !list.is_empty());
    let all: Vec<PathBuf> = match listed {
        Some(list) => env::split_paths(&list).collect(),
        None => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    };
    all.into_iter().filter(|file| Kubeconfig::read_from(file).is_ok()).collect()
}

#[cfg(unix)]
fn readable_by_others(file: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = std::fs::metadata(file).ok()?.permissions().mode() & 0o777;
    Some(mode).filter(|mode| mode & 0o044 != 0)
}

#[cfg(not(unix))]
fn readable_by_others(_: &Path) -> Option<u32> {
    None
}

fn is_this_machine(config: &Config) -> bool {
    let host = config.cluster_url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// How one shows who one is. Never with what.
fn credentials(user: &AuthInfo) -> String {
    let ways = [
        (user.exec.is_some(), "a credential plugin"),
        (user.auth_provider.is_some(), "an auth provider, which kubectl no longer has"),
        (user.token.is_some() || user.token_file.is_some(), "a token"),
        (user.client_certificate.is_some() || user.client_certificate_data.is_some(), "a client certificate"),
        (user.username.is_some(), "a name and a password"),
    ];
    let ways: Vec<&str> = ways.into_iter().filter(|(used, _)| *used).map(|(_, way)| way).collect();
    let way = if ways.is_empty() { "no credentials at all".to_owned() } else { format!("with {}", ways.join(" and ")) };
    match &user.impersonate {
        Some(name) => format!("{way}, impersonating {name}"),
        None => way,
    }
}

fn plugin(exec: &ExecConfig) -> Check {
    let name = "credentials";
    let Some(command) = exec.command.as_deref().filter(|command| !command.is_empty()) else {
        return Check::failed(name, "the user has a credential plugin without a command");
    };
    match executable(command) {
        Some(path) => Check::ok(name, format!("the plugin {} is run, with your rights", path.display())),
        None => {
            let check = Check::failed(name, format!("the credential plugin {command:?} is not there"));
            let hint = exec.install_hint.as_deref().filter(|hint| !hint.is_empty());
            check.with_remedy(hint.unwrap_or("install it, or put its folder into PATH"))
        }
    }
}

/// What would be run: a path as it is, and a name as it is found in `PATH`.
fn executable(command: &str) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| path.is_file();
    if Path::new(command).components().count() > 1 {
        return Some(PathBuf::from(command)).filter(is_file);
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(command)).find(is_file)
}

fn client_certificate(user: &AuthInfo) -> Option<Check> {
    let pem = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => STANDARD.decode(data.trim()).ok(),
        (None, Some(file)) => std::fs::read(file).ok(),
        (None, None) => return None,
    };
    let der = pem.and_then(|pem| CertificateDer::from_pem_slice(&pem).ok());
    let name = "credentials";
    let Some(certificate) = der.and_then(|der| Certificate::parse(&der)) else {
        return Some(Check::warning(name, "the client certificate cannot be read").with_remedy("get a new one"));
    };
    Some(ends(name, "your client certificate", certificate.ends))
}

/// How long a certificate is still good.
pub(super) fn ends(name: &'static str, whose: &str, end: Timestamp) -> Check {
    let left = end.as_second() - Timestamp::now().as_second();
    match left {
        ..0 => Check::failed(name, format!("{whose} has ended: {end}")).with_remedy("get a new one"),
        0..=604_800 => Check::warning(name, format!("{whose} ends within {} days: {end}", left / DAY + 1))
            .with_remedy("get a new one in time"),
        _ => Check::ok(name, format!("{whose} is good until {end}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_found_where_it_would_be_run_from() {
        assert!(executable("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(executable("./no/such/plugin"), None);
        assert_eq!(executable("no-such-plugin-anywhere"), None);
    }

    #[test]
    fn credentials_are_described_and_not_shown() {
        let user: AuthInfo =
            serde_json::from_value(serde_json::json!({"token": "s3cret", "as": "jane"})).expect("a user");
        let text = credentials(&user);
        assert_eq!(text, "with a token, impersonating jane");
        assert_eq!(credentials(&AuthInfo::default()), "no credentials at all");
    }
}
