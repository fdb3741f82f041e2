//! Certificates, keys, tokens, and files with them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use serde_json::json;

use super::User;
use crate::Failure;

/// What it takes to be let in.
#[derive(Debug)]
pub(super) struct Credentials {
    /// The certificate of the authority that the API server's is of, as DER.
    pub(super) authority: Vec<u8>,
    tokens: [String; 2],
}

impl Credentials {
    /// Makes all that there is to make, and writes it into files.
    pub(super) fn make(folder: &Path, port: u16) -> Result<Self, Failure> {
        let authority = authority()?;
        let (certificate, key) = server_certificate(&authority)?;
        let service_accounts = KeyPair::generate().context("no key")?;
        let tokens = [secret()?, secret()?];
        let [admin, powerless] = &tokens;
        let write = |name: &str, text: String| {
            fs::write(folder.join(name), text).with_context(|| format!("{name} cannot be written"))
        };
        write("authority.crt", authority.pem())?;
        write("server.crt", certificate)?;
        write("server.key", key)?;
        write("service-accounts.key", service_accounts.serialize_pem())?;
        write("service-accounts.pub", service_accounts.public_key_pem())?;
        write("tokens.csv", format!("{admin},admin,1,\"system:masters\"\n{powerless},powerless,2\n"))?;
        write("audit-policy.json", audit_policy().to_string())?;
        let made = Self { authority: authority.der().to_vec(), tokens };
        for user in [User::Admin, User::Powerless] {
            let kubeconfig = kubeconfig(folder, port, made.token(user));
            fs::write(kubeconfig_path(folder, user), kubeconfig).context("a kubeconfig cannot be written")?;
        }
        Ok(made)
    }

    pub(super) fn token(&self, user: User) -> &str {
        match user {
            User::Admin => &self.tokens[0],
            User::Powerless => &self.tokens[1],
        }
    }
}

pub(super) fn kubeconfig_path(folder: &Path, user: User) -> PathBuf {
    folder.join(match user {
        User::Admin => "admin.kubeconfig",
        User::Powerless => "powerless.kubeconfig",
    })
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, Failure> {
    let mut parameters = CertificateParams::new(Vec::new())?;
    parameters.distinguished_name.push(DnType::CommonName, "watchkeeper-e2e");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(parameters, KeyPair::generate()?).context("no authority")
}

/// The API server's certificate and key, as PEM.
fn server_certificate(authority: &CertifiedIssuer<'static, KeyPair>) -> Result<(String, String), Failure> {
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, authority).context("no certificate")?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// Random, and made of characters that fit anywhere: a part of a new key.
fn secret() -> Result<String, Failure> {
    let key = KeyPair::generate().context("no key")?;
    let bytes = key.serialize_der();
    Ok(bytes.iter().rev().take(24).map(|byte| format!("{byte:02x}")).collect())
}

/// Who read what: tests count that. Nothing of bodies, and nothing of writes.
fn audit_policy() -> serde_json::Value {
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "verbs": ["list", "watch"], "users": ["admin", "powerless"]}, {"level": "None"}],
    })
}

/// JSON is YAML.
fn kubeconfig(folder: &Path, port: u16, token: &str) -> String {
    let server = format!("https://127.0.0.1:{port}");
    let authority = folder.join("authority.crt");
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": authority}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e", "namespace": "default"}}],
        "users": [{"name": "e2e", "user": {"token": token}}],
    });
    format!("{kubeconfig:#}\n")
}
