//! Machines of their own for the members of a cluster: network namespaces on a bridge, and what cuts one off. Linux, and
//! root's to make.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many networks this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Some machines on one cable. Dropping it takes them down.
#[derive(Debug)]
pub struct Network {
    name: String,
    /// The first three bytes of its addresses; this machine is 254.
    prefix: String,
    machines: usize,
}

fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).status().is_ok_and(|status| status.success())
}

fn do_ip(words: &str) {
    assert!(ip(words), "ip {words}");
}

impl Network {
    /// A network; `None` where this user may not make one, as only root may.
    ///
    /// # Panics
    /// Where it comes half to be.
    pub fn new(machines: usize) -> Option<Self> {
        if !crate::server::is_root() {
            return None;
        }
        let (process, made) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        // Two runs at once have two networks; two that chose the same addresses would fail, and not pass.
        let prefix = format!("10.{}.{}", 128 + process % 100, (process / 100 + made * 17) % 256);
        let network = Self { name: format!("fg{process}x{made}"), prefix, machines };
        let Self { name, prefix, .. } = &network;
        do_ip(&format!("link add {name} type bridge"));
        do_ip(&format!("address add {prefix}.254/24 dev {name}"));
        do_ip(&format!("link set {name} up"));
        for n in 0..machines {
            let (machine, cable, address) = (network.machine(n), network.cable(n), network.address(n));
            do_ip(&format!("netns add {machine}"));
            do_ip(&format!("link add {cable} type veth peer name eth0 netns {machine}"));
            do_ip(&format!("link set {cable} master {name} up"));
            do_ip(&format!("-n {machine} address add {address}/24 dev eth0"));
            do_ip(&format!("-n {machine} link set eth0 up"));
            do_ip(&format!("-n {machine} link set lo up"));
        }
        Some(network)
    }

    /// The name of a machine's namespace, for `ip netns exec`.
    pub fn machine(&self, n: usize) -> String {
        format!("{}m{n}", self.name)
    }

    fn cable(&self, n: usize) -> String {
        format!("{}c{n}", self.name)
    }

    /// A machine's address.
    pub fn address(&self, n: usize) -> String {
        format!("{}.{}", self.prefix, n + 1)
    }

    /// Cuts a machine off from the others. This one still reaches it, and the others.
    ///
    /// # Panics
    /// Where that does not work.
    pub fn cut_off(&self, n: usize) {
        let cable = self.cable(n);
        do_ip(&format!("link set {cable} nomaster"));
        do_ip(&format!("route add {}/32 dev {cable} src {}.254", self.address(n), self.prefix));
    }

    /// Puts it back.
    ///
    /// # Panics
    /// Where that does not work.
    pub fn join(&self, n: usize) {
        let cable = self.cable(n);
        do_ip(&format!("route del {}/32 dev {cable}", self.address(n)));
        do_ip(&format!("link set {cable} master {}", self.name));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for n in 0..self.machines {
            ip(&format!("netns del {}", self.machine(n)));
            ip(&format!("link del {}", self.cable(n))); // gone with its machine, as a rule
        }
        ip(&format!("link del {}", self.name));
    }
}
