//! Several servers in one address, a primary and its standbys: the first that lets us in and can be written is the one, and
//! one that says nothing hides no other.

use super::CoordinatorError;
use fencegate::Duration;
use tokio::task::JoinSet;
use tokio_postgres::{Config, config::TargetSessionAttrs};

/// The servers of an address, each with all the rest of it. (Those of `host=` and `hostaddr=` are left to the client crate,
/// which tries one after the other.)
pub(super) fn hosts(url: &str) -> Result<Vec<Config>, tokio_postgres::Error> {
    let whole: Config = url.parse()?;
    let (names, addresses) = (whole.get_hosts().len(), whole.get_hostaddrs().len());
    let each: Option<Vec<Config>> = split(url).iter().map(|url| url.parse().ok()).collect();
    let mut hosts = each.filter(|each| each.len() == names && addresses == 0).unwrap_or_else(|| vec![whole]);
    // Else a standby that is quicker than its primary would be the one, though it can grant nothing.
    if names.max(addresses) > 1 && !url.contains("target_session_attrs") {
        for host in &mut hosts {
            host.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
    }
    Ok(hosts)
}

/// `scheme://user@a,b:2/rest` as `scheme://user@a/rest` and `scheme://user@b:2/rest`.
fn split(url: &str) -> Vec<String> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(start);
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    hosts.split(',').map(|host| [scheme, user, host, path].concat()).collect()
}

/// The first of `hosts` where `open` gets in. Each is tried as soon as one before it has failed, or has taken its share of the
/// time; that one goes on meanwhile, for it may be far away and no worse. Where all fail, what was said last; but where one
/// has said what no other try would change, that.
pub(super) async fn first<T, Open>(
    hosts: &[Config],
    ttl: Duration,
    open: impl Fn(Config) -> Open,
) -> Result<T, CoordinatorError>
where
    T: Send + 'static,
    Open: Future<Output = Result<T, CoordinatorError>> + Send + 'static,
{
    let share = share(ttl, hosts.len()).into();
    let (mut waiting, mut opening) = (hosts.iter().cloned(), JoinSet::new());
    let mut last = CoordinatorError::NoAnswer("PostgreSQL: no host".to_owned());
    loop {
        if let Some(host) = waiting.next() {
            opening.spawn(open(host));
        }
        tokio::select! {
            tried = opening.join_next() => match tried {
                Some(Ok(Ok(opened))) => return Ok(opened),
                Some(Ok(Err(CoordinatorError::NoAnswer(_)))) if matches!(last, CoordinatorError::Unfit(_)) => {}
                Some(Ok(Err(error))) => last = error,
                Some(Err(_)) => {} // none panics
                None => return Err(last),
            },
            () = tokio::time::sleep(share), if waiting.len() > 0 => {}
        }
    }
}

/// For how long one of so many is alone: all have begun before the call is overdue, half a heartbeat after it began.
fn share(ttl: Duration, hosts: usize) -> Duration {
    let hosts = u64::try_from(hosts).unwrap_or(u64::MAX).clamp(1, 1_000);
    Duration::from_micros((ttl.as_micros() / 12 / hosts).max(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;
    use tokio_postgres::config::Host;

    fn named(url: &str) -> Vec<String> {
        let one = |config: &Config| match (config.get_hosts(), config.get_user(), config.get_dbname()) {
            ([Host::Tcp(host)], user, name) => {
                format!("{} {host} {:?} {}", user.unwrap_or_default(), config.get_ports(), name.unwrap_or_default())
            }
            (hosts, ..) => format!("{} hosts", hosts.len()),
        };
        hosts(url).unwrap().iter().map(one).collect()
    }

    #[test]
    fn an_address_of_several_servers_is_one_of_each() {
        assert_eq!(named("postgres://press@db/plant"), ["press db [5432] plant"]);
        let two = ["press a [5433] plant", "press b [5432] plant"];
        assert_eq!(named("postgresql://press@a:5433,b/plant?sslmode=require"), two);
        assert_eq!(named("postgres://p:q%40,r@a,b:1"), ["p a [5432] ", "p b [1] "]);
        assert_eq!(named("host=a,b user=press dbname=plant"), ["2 hosts"]);
        assert_eq!(named("postgres://press@a,b/plant?hostaddr=10.0.0.1,10.0.0.2"), ["2 hosts"]);
        assert!(hosts("postgres://a:x,b").is_err());
    }

    #[test]
    fn of_several_servers_only_one_that_can_be_written_will_do() {
        use TargetSessionAttrs::{Any, ReadOnly, ReadWrite};
        for (url, attrs) in [
            ("postgres://press@db/plant", Any),
            ("postgres://press@a:5433,b/plant", ReadWrite),
            ("host=a,b user=press", ReadWrite),
            ("hostaddr=10.0.0.1,10.0.0.2 user=press", ReadWrite),
            ("postgres://a,b/plant?target_session_attrs=any", Any),
            ("postgres://a,b/plant?target_session_attrs=read-only", ReadOnly),
            ("postgres://db/plant?target_session_attrs=read-write", ReadWrite),
        ] {
            let hosts = hosts(url).unwrap();
            assert!(!hosts.is_empty(), "{url}");
            assert!(hosts.iter().all(|host| host.get_target_session_attrs() == attrs), "{url}");
        }
    }

    #[test]
    fn every_host_has_its_turn_before_the_call_is_overdue() {
        for (ttl, hosts) in [(3_000_000, 1), (3_000_000, 3), (10_000_000, 7), (600_000_000, 1)] {
            let each = share(Duration::from_micros(ttl), hosts).as_micros();
            assert!(each > 0 && each * hosts as u64 <= ttl / 12, "{ttl} {hosts}: {each}");
        }
        assert_eq!(share(Duration::from_micros(1), 0), Duration::from_millis(1), "never without any time");
    }

    /// A script for each host: what it does, and after how many ms.
    async fn tried(script: &[(&'static str, u64)]) -> (Result<&'static str, CoordinatorError>, u128) {
        let hosts = hosts(&format!("postgres://{}/x", vec!["h"; script.len()].join(","))).unwrap();
        let script: Vec<_> = script.iter().copied().rev().collect();
        let script = std::sync::Mutex::new(script);
        let begun = Instant::now();
        let open = |_| {
            let (does, after) = script.lock().unwrap().pop().unwrap();
            async move {
                tokio::time::sleep(std::time::Duration::from_millis(after)).await;
                match does {
                    "fails" => Err(CoordinatorError::NoAnswer(after.to_string())),
                    "is wrong" => Err(CoordinatorError::Unfit(after.to_string())),
                    _ => Ok(does),
                }
            }
        };
        (first(&hosts, Duration::from_secs(12), open).await, begun.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_says_nothing_hides_no_other() {
        const NEVER: u64 = 1_000_000;
        let is = |(tried, after): (Result<&str, CoordinatorError>, u128), who: &str, at: u128| {
            assert_eq!((tried.unwrap(), after), (who, at));
        };
        is(tried(&[("a", 700)]).await, "a", 700);
        is(tried(&[("a", NEVER), ("b", 30)]).await, "b", 530);
        is(tried(&[("a", NEVER), ("b", NEVER), ("c", 30)]).await, "c", 698);
        is(tried(&[("fails", 10), ("b", 30)]).await, "b", 40);
        is(tried(&[("a", 600), ("b", NEVER)]).await, "a", 600);
        is(tried(&[("a", 600), ("fails", 10)]).await, "a", 600);
        let (all_fail, after) = tried(&[("fails", 900), ("fails", 30)]).await;
        assert!(matches!(all_fail, Err(CoordinatorError::NoAnswer(last)) if last == "900"));
        assert_eq!(after, 900);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_host_does_not_hide_what_is_wrong_at_another() {
        for script in [
            [("is wrong", 10), ("fails", 20)],
            [("fails", 20), ("is wrong", 10)],
            [("is wrong", 900), ("fails", 10)],
            [("is wrong", 30), ("is wrong", 10)],
        ] {
            let (all_fail, _) = tried(&script).await;
            assert!(matches!(all_fail, Err(CoordinatorError::Unfit(_))), "{script:?}: {all_fail:?}");
        }
        let (one, _) = tried(&[("is wrong", 10), ("b", 30)]).await;
        assert_eq!(one.unwrap(), "b", "and nothing is wrong where one lets us in");
    }
}
