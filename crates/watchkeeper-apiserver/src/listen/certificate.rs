//! TLS with a certificate authority that exists for one port.
//!
//! The authority signs one certificate, and its key is forgotten. Its own certificate is in the kubeconfig: clients that
//! have that trust this server, and nobody trusts anything else because of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use jiff::{Timestamp, ToSpan, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use super::error::ListenError;

/// How long the certificates are valid. Long enough for any test, short enough not to matter later.
const YEARS: i64 = 1;

/// A server's side of TLS.
pub(super) struct Identity {
    pub(super) acceptor: TlsAcceptor,
    /// The authority's certificate.
    pub(super) ca_pem: String,
}

impl Identity {
    /// A new one, for the loopback names, the address that the server listens on, and other names.
    pub(super) fn new(address: IpAddr, names: &[String]) -> Result<Self, ListenError> {
        make(address, names).map_err(|error| ListenError::Certificate(error.to_string()))
    }
}

fn make(address: IpAddr, names: &[String]) -> Result<Identity, Box<dyn std::error::Error>> {
    let ca_key = KeyPair::generate()?;
    let mut ca = params("watchkeeper-ca", Vec::new())?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca_pem = ca.self_signed(&ca_key)?.pem();

    let mut subjects: Vec<String> = vec!["localhost".to_owned()];
    subjects.extend([IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].map(|ip| ip.to_string()));
    let address = (!address.is_unspecified()).then(|| address.to_string());
    for name in address.iter().chain(names) {
        if !subjects.contains(name) {
            subjects.push(name.clone());
        }
    }
    let key = KeyPair::generate()?;
    let mut server = params("watchkeeper-apiserver", subjects)?;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let certificate = server.signed_by(&key, &Issuer::new(ca, ca_key))?;

    // The provider is named: a process that has another one as its default keeps it.
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Identity { acceptor: TlsAcceptor::from(Arc::new(config)), ca_pem })
}

/// What both certificates have: a name, and a time from yesterday on, for clocks that differ.
fn params(name: &str, subjects: Vec<String>) -> Result<CertificateParams, Box<dyn std::error::Error>> {
    let mut params = CertificateParams::new(subjects)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let (from, to) = (today.checked_sub(1.day())?, today.checked_add(YEARS.years())?);
    let day = |date: jiff::civil::Date| date_time_ymd(date.year().into(), date.month() as u8, date.day() as u8);
    (params.not_before, params.not_after) = (day(from), day(to));
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_is_shown_as_pem_and_its_key_is_not() {
        let identity = Identity::new(Ipv4Addr::LOCALHOST.into(), &[]).unwrap();
        assert!(identity.ca_pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(!identity.ca_pem.contains("KEY") && identity.ca_pem.matches("BEGIN").count() == 1);
    }

    #[test]
    fn a_name_that_no_certificate_can_have_is_an_error() {
        let error = Identity::new(Ipv4Addr::LOCALHOST.into(), &["käse.test".to_owned()]).err().unwrap();
        assert!(matches!(error, ListenError::Certificate(_)), "{error}");
    }
}
