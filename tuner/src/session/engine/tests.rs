use space::machine::Host;

use super::*;

#[test]
fn an_unknown_engine_names_those_that_are_known() {
    let message = Engine::chosen(Some("no-such"), None, None).unwrap_err().to_string();
    assert!(message.contains("no-such") && message.contains("hpcc, rochpl"), "{message}");
}

/// A session with it was resumed with our engine.
#[test]
fn a_profile_with_the_name_of_our_engine_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let (_, netlib) = SHIPPED[0];
    std::fs::write(&path, netlib.replace("name = \"netlib\"", "name = \"hpl\"")).unwrap();
    let message = Engine::chosen(path.to_str(), None, None).unwrap_err().to_string();
    assert!(message.contains("give it another name"), "{message}");
}

/// They were looked for in the folder of the user, and started in those of the trials.
#[test]
fn launcher_and_wrapper_of_a_profile_are_found_from_any_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let first = |launcher: &str, wrapper: &str| {
        let (_, netlib) = SHIPPED[0];
        let text =
            netlib.replace("\"mpirun\"", launcher).replace("[\"{launch}\"", &format!("[{wrapper}\"{{launch}}\""));
        std::fs::write(&path, text)?;
        let Engine::Foreign(foreign) = Engine::chosen(path.to_str(), None, None)? else { panic!("ours") };
        let engine = space::EngineParams::default();
        let candidate = Candidate { hpl: space::HplParams::baseline(1000, 1, 1), engine };
        Ok::<_, anyhow::Error>(foreign.command(&candidate, Path::new("/t")).remove(0))
    };
    // Tests run in the folder of the package.
    let here = |name: &str| std::path::absolute(name).unwrap().into_os_string();
    assert_eq!(first("'bin/mpirun -np {np}'", "").unwrap(), here("bin/mpirun"));
    assert_eq!(first("'mpirun'", "'./numa.sh', ").unwrap(), here("numa.sh"));
    assert_eq!(first("'mpirun'", "").unwrap(), "mpirun");
    let message = first("'srun -C \"a b\" -n {np}'", "").unwrap_err().to_string();
    assert!(message.contains("launcher") && message.contains("quotes hold none together"), "{message}");
}

#[test]
fn a_library_that_a_description_names_without_a_path_is_asked_for_by_its_path() {
    let refused = |kernels: &str| {
        let host = Host { kernels: kernels.to_owned(), ..Host::default() };
        let machine = Machine { host, ..Machine::default() };
        Engine::Ours.kernels(&KernelChoice::Auto, Some(&machine)).unwrap_err().to_string()
    };
    let message = refused("/lib/libopenblas.so.0");
    assert!(message.contains("give --blas /lib/libopenblas.so.0 if you trust it"), "{message}");
    let message = refused("OpenBLAS 0.3.1");
    assert!(message.contains("give its path by --blas if you trust it"), "{message}");
}

#[test]
fn a_missing_program_is_named_before_anything_runs() {
    let check = |launcher, program: Option<&str>| {
        let engine = Engine::chosen(Some("netlib"), launcher, program.map(Path::new)).unwrap();
        engine.check_programs().unwrap_err().to_string()
    };
    let message = check(Some("no-such-mpirun -n {np}"), None);
    assert!(message.contains("no-such-mpirun"), "{message}");
    let message = check(Some("none"), Some("/no/such/xhpl"));
    assert!(message.contains("/no/such/xhpl") && message.contains("--program"), "{message}");
}

#[test]
fn a_launcher_that_is_not_told_the_number_of_processes_is_refused() {
    let message = Engine::chosen(Some("netlib"), Some("my-launcher"), None).unwrap_err().to_string();
    assert!(message.contains("'my-launcher -n {np}'"), "{message}");
    Engine::chosen(Some("netlib"), Some("mpirun.openmpi"), None).unwrap();
}

#[test]
fn flags_that_an_engine_would_not_obey_are_refused_with_the_way_out() {
    let of = |name: &str| Engine::chosen(Some(name), None, None).unwrap();
    let blas = KernelChoice::Blas("/lib/libopenblas.so.0".into());
    let message = of("netlib").check_flags(None, &blas).unwrap_err().to_string();
    assert!(message.contains("--blas /lib/libopenblas.so.0") && message.contains("--program"), "{message}");
    let message = of("rochpl").check_flags(Some(2), &KernelChoice::Auto).unwrap_err().to_string();
    assert!(message.contains("--threads 2") && message.contains("rochpl"), "{message}");
    of("rochpl").check_flags(Some(1), &KernelChoice::Auto).unwrap();
    of("netlib").check_flags(Some(2), &KernelChoice::Auto).unwrap();
    Engine::Ours.check_flags(Some(2), &blas).unwrap();
    let message = Engine::chosen(Some("rochpl"), Some("srun"), None).unwrap_err().to_string();
    assert!(message.contains("--launcher") && message.contains("{launch}"), "{message}");
}

#[test]
fn an_expert_is_known_where_the_processor_is_and_obeys_the_engine() {
    let facts = |vendor: Option<&str>| HostFacts {
        cpu_model: "CPU".into(),
        cpu_vendor: vendor.map(str::to_owned),
        cores_sharing: Some(4),
        ..hpl::machine::host::facts()
    };
    let amd = facts(Some("AuthenticAMD"));
    let spec = DomainSpec { cores: 8, memory_bytes: 8 << 30, ranks: None, threads: None, ..amd.domain_spec(8000) };
    let of = |engine: &str, facts: &HostFacts, cpu: Option<&str>| {
        let engine = if engine == "ours" { Engine::Ours } else { Engine::chosen(Some(engine), None, None).unwrap() };
        engine.expert(&spec, &engine.usual(&spec).unwrap(), facts, cpu)
    };
    let expert = of("ours", &amd, Some("another")).unwrap();
    assert_eq!((expert.ranks, expert.threads, expert.nb), (2, 4, 240));
    let reason = of("ours", &facts(None), None).unwrap_err();
    assert!(reason.contains("vendor") && reason.contains("unknown"), "{reason}");
    let uneven = HostFacts { cores_sharing: None, ..amd.clone() };
    assert!(of("ours", &uneven, None).unwrap_err().contains("unequally"));
    assert_eq!(of("netlib", &amd, Some("CPU")).unwrap().nb, 240);
    assert!(of("netlib", &amd, Some("another")).unwrap_err().contains("described nodes"));
    assert!(of("rochpl", &amd, None).unwrap_err().contains("accelerators"));
}

#[test]
fn n_fills_the_memory_of_gpus() {
    let cuda = Engine::chosen(Some("cuda"), None, None).unwrap();
    // 95 % of an H100's 85 GB: √(80.75 GB / 8) = 100 468.
    let one = 80_750_000_000;
    let n = cuda.largest_order(one, 1, 1);
    assert!((99_900..100_468).contains(&n), "{n}");
    let spec = |n| DomainSpec {
        n,
        cores: 1,
        memory_bytes: one,
        ranks: None,
        threads: None,
        ..hpl::machine::host::facts().domain_spec(n)
    };
    let (domain, usual) = cuda.domain(&spec(n)).unwrap();
    assert_eq!(usual.hpl.nb, 1024);
    let searched = |nb: usize, by_host: bool| {
        let found = domain.points().iter().map(|point| domain.candidate(point));
        found.filter(|c| c.hpl.nb == nb && (c.engine.extra["fact_blocks"] == "0") == by_host).count()
    };
    assert!(searched(2048, false) > 0 && searched(1024, true) == 0, "L of the host's panels has no room there");
    let rfacts = |blocks: &str| {
        let of_blocks = |c: &Candidate| c.hpl.nb == 256 && c.engine.extra["fact_blocks"] == blocks;
        let found = domain.points().iter().map(|point| domain.candidate(point)).filter(of_blocks);
        found.map(|c| format!("{:?} {:?}", c.hpl.rfact, c.hpl.pfact)).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(rfacts("32"), 1, "the device's panels have no PFACT and RFACT");
    let message = cuda.domain(&spec(n + 1024)).err().unwrap().to_string();
    assert!(message.contains("lower N to at most"), "{message}");
    // 2×4: rows of exchanges are in the memory of the devices as well.
    let eight = cuda.largest_order(8 * one, 8, 1);
    assert!((270_000..280_000).contains(&eight), "{eight}");
    let rochpl = Engine::chosen(Some("rochpl"), None, None).unwrap();
    assert_eq!(rochpl.largest_order(one, 1, 1), space::domain::largest_n(one, 1, 1, rochpl.largest_nb(), 1));
}

/// Panels of NB = 512 on 1×31 left a third of the memory empty.
#[test]
fn a_prime_number_of_cores_fills_the_memory_as_well() {
    let memory_bytes = 64 << 30;
    for engine in [Engine::Ours, Engine::Launched(MpiJob::new("mpirun -n {np}", "xhpl".into()))] {
        let [prime, other] = [31, 32].map(|cores| engine.largest_order(memory_bytes, cores, 1));
        assert!(prime > other * 19 / 20, "{prime} of {other}");
        let spec = DomainSpec { cores: 31, memory_bytes, ..hpl::machine::host::facts().domain_spec(prime) };
        let (domain, usual) = engine.domain(&spec).unwrap();
        assert!(usual.hpl.q == 31 && domain.has_memory_for(&usual), "{prime}");
    }
}

/// Every candidate at the largest N passes the check of its run.
#[test]
fn processes_have_memory_for_their_messages_at_the_largest_n() {
    let job = MpiJob::new("mpirun -n {np}", "xhpl".into());
    let (threads, processes) = (Engine::Ours, Engine::Launched(job));
    let memory_bytes = 64 << 30;
    let [one, other] = [&threads, &processes].map(|engine| engine.largest_order(memory_bytes, 16, 1));
    assert!(other < one && other > one * 9 / 10, "{other} of {one}");
    let facts = hpl::machine::host::facts();
    let spec = |n| DomainSpec { cores: 16, memory_bytes, ranks: Some(16), threads: None, ..facts.domain_spec(n) };
    let fits = |c: &Candidate| {
        let space::HplParams { n, p, q, nb, depth, .. } = c.hpl;
        space::order::required_bytes_of_processes(n, p, q, nb, depth) <= memory_bytes
    };
    let (domain, usual) = processes.domain(&spec(other)).unwrap();
    assert!(fits(&usual) && domain.points().iter().all(|point| fits(&domain.candidate(point))));
    let (domain, _) = threads.domain(&spec(one)).unwrap();
    assert!(domain.points().iter().any(|point| !fits(&domain.candidate(point))));
}

#[test]
fn a_session_finds_its_engine_again() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
    let engine = Engine::chosen(Some("hpcc"), Some("srun -n {np}"), Some(Path::new("/opt/hpcc"))).unwrap();
    engine.save(&folder).unwrap();
    let session = Session { engine: engine.name().to_owned(), ..crate::report::summary::tests::session() };
    let Engine::Foreign(read) = Engine::of(&session, &folder).unwrap() else { panic!("ours") };
    assert_eq!((read.profile().launcher.as_str(), read.profile().program.as_str()), ("srun -n {np}", "/opt/hpcc"));
    std::fs::write(folder.engine_toml(), "schema_version = 1\n").unwrap();
    let message = Engine::of(&session, &folder).unwrap_err().to_string();
    assert!(message.contains("engine.toml is damaged"), "{message}");
}
