//! `cargo xtask web`: the page, built and served.

use anyhow::{Context, ensure};
use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tower_http::services::ServeDir;
use tower_http::set_header::SetResponseHeaderLayer;

/// The page's Content-Security-Policy: the build puts it into the page too, the tests serve it as well.
const POLICY: &str = include_str!("../../web/csp.txt");

/// Checks the page's types, builds it, and returns its folder, `web/dist` under `root`.
///
/// Needs `wasm/pkg` and `wasm/gate/pkg` (see `wasm::build`), the firmware's image, and `npm ci` in `web/` and in the
/// emulator's folder first.
pub(crate) fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let web = root.join("web");
    for pkg in ["wasm/pkg", "wasm/gate/pkg"] {
        ensure!(root.join(pkg).join("package.json").is_file(), "the page needs {pkg}: run `cargo xtask wasm` first");
    }
    ensure!(web.join("node_modules").is_dir(), "the page needs its tools: run `npm ci` in web/ first");
    let status = Command::new("npm")
        .current_dir(&web)
        .args(["run", "--silent", "build"])
        .status()
        .context("cannot start npm")?;
    ensure!(status.success(), "the page does not build: npm ended with {status}");
    Ok(web.join("dist"))
}

/// Serves a folder of static files until the process ends; prints the address once it listens.
pub(crate) fn serve(dir: &Path, addr: SocketAddr) -> anyhow::Result<()> {
    ensure!(dir.join("index.html").is_file(), "there is no page in {}", dir.display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(addr).await.with_context(|| format!("cannot listen on {addr}"))?;
        println!("the page is at http://{}/", listener.local_addr()?);
        axum::serve(listener, router(dir)?).await?;
        Ok(())
    })
}

/// The files of `dir`, and nothing above it, with the headers of a page that trusts only itself.
fn router(dir: &Path) -> anyhow::Result<Router> {
    let policy = format!("{}; frame-ancestors 'none'", POLICY.trim());
    let policy = HeaderValue::from_str(&policy).context("web/csp.txt is no header value")?;
    let set = |name: HeaderName, value: HeaderValue| SetResponseHeaderLayer::overriding(name, value);
    Ok(Router::new()
        .fallback_service(ServeDir::new(dir))
        .layer(set(header::CONTENT_SECURITY_POLICY, policy))
        .layer(set(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
        .layer(set(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
        .layer(set(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))))
}
