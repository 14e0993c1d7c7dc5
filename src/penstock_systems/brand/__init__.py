"""A content engine in five services that research, write, check, publish and post, once each."""
