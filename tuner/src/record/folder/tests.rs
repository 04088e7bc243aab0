use super::*;

#[test]
fn an_existing_folder_is_not_overwritten() {
    let parent = tempfile::tempdir().unwrap();
    std::fs::write(parent.path().join("thesis.tex"), "").unwrap();
    let error = RunFolder::create(parent.path()).unwrap_err();
    assert!(matches!(error, RecordError::Exists { .. }));
    let expected = format!("--resume {}", parent.path().display());
    assert!(error.to_string().contains(&expected), "{error}");
    assert!(matches!(RunFolder::open(parent.path()), Err(RecordError::NoSession { .. })));
}

#[test]
fn a_folder_whose_session_never_began_is_taken_again() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("run");
    let (folder, lock) = RunFolder::create(&root).unwrap();
    folder.lay_ballast();
    std::fs::write(folder.machine_toml(), "").unwrap();
    // Of a simulated one.
    std::fs::create_dir(folder.calibration()).unwrap();
    std::fs::write(folder.calibrated_node(), "").unwrap();
    std::fs::write(folder.simulated_toml(), "").unwrap();
    std::fs::write(root.join(".session.toml.77.tmp"), "").unwrap();
    let by = format!("another hpl-tune (pid {} on ", std::process::id());
    assert!(RunFolder::create(&root).unwrap_err().to_string().starts_with(&by), "{by}");
    assert!(RunFolder::open(&root).unwrap_err().to_string().contains("ended before it began"));
    drop(lock);
    let (folder, _lock) = RunFolder::create(&root).unwrap();
    std::fs::write(folder.session_toml(), "").unwrap();
    assert!(matches!(RunFolder::create(&root), Err(RecordError::Exists { .. })));
}

#[test]
#[ignore = "needs the right to mount: tests/run runs it where that is given"]
fn needs_mount_ballast_makes_room_for_the_last_records() {
    let disk = small_disk::SmallDisk::mount();
    // A disk too small for it has none.
    let (folder, _lock) = RunFolder::create(&disk.path().join("run")).unwrap();
    folder.lay_ballast();
    assert!(!folder.drop_ballast());
    std::fs::write(folder.ballast(), [7; 32 * 1024]).unwrap();
    let _filler = disk.fill();
    assert!(replace_file(&folder.hpl_dat(), &[b'x'; 20_000]).is_err());
    assert!(folder.drop_ballast());
    replace_file(&folder.hpl_dat(), &[b'x'; 20_000]).unwrap();
}

#[test]
fn a_last_record_is_written_once_more_without_the_ballast() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
    let failing = |kind: io::ErrorKind, times: usize| {
        let mut tries = 0;
        let written = folder.write_with_ballast(|| {
            tries += 1;
            if tries <= times { Err(RecordError::write(folder.root())(kind.into())) } else { Ok(()) }
        });
        (written.is_ok(), tries)
    };
    assert_eq!(failing(io::ErrorKind::StorageFull, 1), (false, 1), "there is no ballast");
    folder.lay_ballast();
    assert_eq!(failing(io::ErrorKind::PermissionDenied, 1), (false, 1));
    assert!(folder.ballast().exists());
    assert_eq!(failing(io::ErrorKind::QuotaExceeded, 1), (true, 2));
    assert!(!folder.ballast().exists());
    folder.lay_ballast();
    assert_eq!(failing(io::ErrorKind::StorageFull, 2), (false, 2));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = RunFolder::create(&file.join("run")).unwrap_err();
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
}

#[test]
fn sessions_of_the_same_second_get_folders_of_their_own() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("host-20261120-070809");
    let made: Vec<_> = (0..3).map(|_| RunFolder::create_numbered(&root).unwrap()).collect();
    let names: Vec<_> = made.iter().map(|(folder, _)| folder.name()).collect();
    assert_eq!(names, ["host-20261120-070809", "host-20261120-070809-2", "host-20261120-070809-3"]);
}

#[test]
fn host_names_make_no_folders() {
    let path = RunFolder::default_path("a/b c", "2026-11-20T07:08:09Z".parse().unwrap());
    assert_eq!(path, Path::new("runs/a_b_c-20261120-070809"));
}
