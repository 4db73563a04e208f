//! What it takes to reach a service.

#![cfg_attr(
    not(all(feature = "postgres", feature = "redis")),
    allow(dead_code, reason = "what only the services that were left out need")
)]

#[cfg(feature = "tls")]
use super::CoordinatorError;

/// What it takes to reach a service and does not belong into its address, which every user of a machine can read.
#[derive(Clone, Default)]
pub struct Access {
    /// The password of the user that the address names, in place of one in the address.
    pub password: Option<String>,
    /// The certificates (PEM) of those who vouch for the service; without them, those that this machine trusts.
    pub ca: Option<Vec<u8>>,
}

impl std::fmt::Debug for Access {
    /// Whether there is a password, and not which one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (password, ca) = (self.password.is_some(), self.ca.is_some());
        f.debug_struct("Access").field("password", &password).field("ca", &ca).finish()
    }
}

/// Settles which cryptography this process uses, where nobody has yet: some clients ask for the process's own.
#[cfg(feature = "tls")]
pub(super) fn settle_cryptography() {
    let _ = rustls::crypto::ring::default_provider().install_default(); // another one serves as well
}

#[cfg(feature = "tls")]
impl Access {
    /// What a client needs to believe a server: a certificate for the name that it was called by.
    pub(super) fn tls(&self) -> Result<rustls::ClientConfig, CoordinatorError> {
        use rustls::pki_types::{CertificateDer, pem::PemObject};
        let unfit = |why: String| CoordinatorError::Unfit(format!("TLS: {why}"));
        let mut roots = rustls::RootCertStore::empty();
        if let Some(ca) = &self.ca {
            for certificate in CertificateDer::pem_slice_iter(ca) {
                let certificate =
                    certificate.map_err(|error| unfit(format!("a certificate cannot be read: {error}")))?;
                roots.add(certificate).map_err(|error| unfit(format!("a certificate is not one: {error}")))?;
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if roots.is_empty() {
            return Err(unfit("there is no certificate of anybody who could vouch for the service".to_owned()));
        }
        settle_cryptography();
        Ok(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    }
}
