"""What every question uses: tables in, engines, statistics, and results shown."""
