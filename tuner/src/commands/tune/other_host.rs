//! A session without named nodes that goes on on another host: on another machine, or on one that is as the one before.

use std::collections::BTreeSet;

use hpl::machine::host::{HostFacts, facts};
use objectives::launcher::short;
use space::machine::Machine;

use super::moved::least_s;
use super::settle::same_machine;
use crate::record::folder::{RunFolder, remove_file};
use crate::record::session::Session;
use crate::record::{Identity, Row, journal};
use crate::search::progress::say;
use crate::session::input::read_machine;

/// What stands for a processor of which nothing is known.
const UNKNOWN: [&str; 2] = ["", "unknown"];

/// Makes of a session that names no nodes one on this host. Where that is another machine it is calibrated anew, unless its rates were given, and what was
/// measured before belongs to the other one. Else all trials count, and the report names the hosts.
///
/// # Errors
/// Files that cannot be read or written.
pub(super) fn go_on_here(session: &mut Session, folder: &RunFolder) -> anyhow::Result<()> {
    let here = facts();
    let names_nodes = !session.hosts.is_empty() || session.is_simulated();
    // What cannot go on here is refused when it is to run something.
    if names_nodes || short(&session.host) == short(&here.hostname) || same_machine(session).is_err() {
        return Ok(());
    }
    let (record, path) = (folder.journal(), folder.machine_toml());
    let rows = if record.exists() { journal::read(&record)?.rows } else { Vec::new() };
    // One with its result keeps it.
    if rows.iter().any(|row| row.passed && row.strategy == Identity::FINAL) {
        return Ok(());
    }
    let described = read_machine(&path).ok().map(|(machine, _)| machine);
    let moved = on_another_machine(session, rows, &here, described.as_ref());
    let what = match moved {
        Some(_) => "another machine: its trials before influence what is tried first, and are not part of the result",
        None => "and all of its trials count: the report names the hosts, as their rates may not compare",
    };
    say(&format!("warning: the session was on {}, now it is on {}, {what}", session.host, here.hostname));
    if moved.is_some() && folder.calibration().exists() {
        remove_file(&path)?;
    }
    *session = moved.unwrap_or_else(|| Session { host: here.hostname, ..session.clone() });
    Ok(session.save(&folder.session_toml())?)
}

/// The session on the machine `here`, where its ranks are in this process, that is another one by what is `described` of the one before, and there
/// is time to begin anew; `rows`: its record.
fn on_another_machine(
    session: &Session,
    rows: Vec<Row>,
    here: &HostFacts,
    described: Option<&Machine>,
) -> Option<Session> {
    if session.engine != Session::OURS || session.mpi_job.is_some() {
        return None;
    }
    let ran_on = rows.iter().map(|row| &row.host).chain([&session.host]).chain(&session.moved_from);
    let others: BTreeSet<String> = ran_on.filter(|host| short(host) != short(&here.hostname)).cloned().collect();
    let rows = session.split(rows).all;
    let elapsed_s = session.used_s(&rows);
    if is_alike(session, &rows, here, described) || session.budget_s - elapsed_s < least_s(&rows, 0.0) {
        return None;
    }
    Some(Session {
        host: here.hostname.clone(),
        moved_from: others.into_iter().collect(),
        cores: here.cores_allowed.clone(),
        elapsed_s,
        n: session.n.filter(|_| session.n_fixed),
        n_memory: None,
        expert: None,
        left: None,
        lead_of_search: None,
        ..session.clone()
    })
}

/// Whether the machine that `rows` of the session are of is as `here` by its processor and its cores. Not where its processor is not known, as
/// nothing is `described` of it; nor where the session has left this host.
fn is_alike(session: &Session, rows: &[Row], here: &HostFacts, described: Option<&Machine>) -> bool {
    let mut hosts = rows.iter().map(|row| &row.host).chain([&session.host]);
    let of_these = |machine: &&Machine| hosts.any(|host| short(host) == short(&machine.host.name));
    let cpu = described.filter(of_these).map(|machine| machine.host.cpu.as_str());
    let was_left = session.moved_from.iter().any(|host| short(host) == short(&here.hostname));
    let same_cpu = cpu == Some(here.cpu_model.as_str()) && !UNKNOWN.contains(&here.cpu_model.as_str());
    same_cpu && session.cores.len() == here.cores_allowed.len() && !was_left
}

#[cfg(test)]
mod tests {
    use space::machine::Host;

    use super::*;
    use crate::record::arbitrary::row;
    use crate::report::summary::tests::session;

    fn on(hostname: &str) -> HostFacts {
        HostFacts { hostname: hostname.into(), cpu_model: "C".into(), cores_allowed: vec![4, 5], ..facts() }
    }

    /// What is described of a host with this processor.
    fn described(host: &str, cpu: &str) -> Machine {
        let host = Host { name: host.into(), cpu: cpu.into(), ..Host::default() };
        Machine { host, ..Machine::default() }
    }

    fn rows_on(hosts: &[&str]) -> Vec<Row> {
        (0..).zip(hosts).map(|(trial, host)| Row { host: (*host).into(), ..row(trial) }).collect()
    }

    /// Both counted in one score.
    #[test]
    fn trials_of_another_machine_are_no_part_of_the_result() {
        let rows = rows_on(&["host", "host"]);
        let moved = |described: Option<&Machine>| {
            let moved = on_another_machine(&session(), rows.clone(), &on("b.site"), described)?;
            let split = moved.split(rows.clone());
            assert_eq!((split.all.len(), split.elsewhere.len()), (0, 2));
            Some((moved.host, moved.moved_from, moved.cores, moved.n, moved.elapsed_s))
        };
        let anew = Some(("b.site".to_owned(), vec!["host".to_owned()], vec![4, 5], None, 21.0));
        assert_eq!(moved(Some(&described("host.site", "other"))), anew);
        assert_eq!(moved(Some(&described("host", ""))), anew);
        assert_eq!(moved(Some(&described("described by hand", "C"))), anew);
        assert_eq!(moved(None), anew);
        assert_eq!(moved(Some(&described("host", "C"))), None, "it is as the one before");
    }

    #[test]
    fn back_on_its_first_machine_a_session_has_its_first_trials_again() {
        let before = Session { host: "b".into(), moved_from: vec!["host".into()], ..session() };
        let rows = rows_on(&["host", "host", "b"]);
        // As the one that it has left meanwhile, and yet not the same.
        let back = on_another_machine(&before, rows.clone(), &on("host"), Some(&described("b", "C"))).unwrap();
        assert_eq!((back.host.as_str(), &back.moved_from), ("host", &vec!["b".to_owned()]));
        let split = back.split(rows);
        assert_eq!((split.all.len(), split.elsewhere.len()), (2, 1));
    }

    #[test]
    fn what_is_not_measured_anew_keeps_its_trials() {
        let moved = |session: &Session| on_another_machine(session, rows_on(&["host"]), &on("b"), None).is_some();
        let late = Session { elapsed_s: 100.0, ..session() };
        let foreign = Session { engine: "netlib".into(), kernels: None, ..session() };
        assert_eq!([moved(&session()), moved(&late), moved(&foreign)], [true, false, false]);
        let more_cores = HostFacts { cores_allowed: vec![0, 1, 2], ..on("b") };
        let by_cores = on_another_machine(&session(), Vec::new(), &more_cores, Some(&described("host", "C")));
        assert_eq!(by_cores.map(|session| session.cores), Some(vec![0, 1, 2]));
    }
}
