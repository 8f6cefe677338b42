"""Steps of a recording: how their time divides, and in what slow ones differ."""
